"""What `run` and `resume` do with a sweep: several runs, one progress, one page that compares."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from algocapture.cli.launching import Asked
from algocapture.cli.output import Plain, print_json
from algocapture.cli.progress import ending
from algocapture.cli.text import echo
from algocapture.experiment import Experiment, Recipe, Sink, Swept, sweep
from algocapture.launch import DONE, FAILED, INTERRUPTED
from algocapture.report import PAGE, summarise, summarise_sweep, write_page
from algocapture.report.together import is_pac
from algocapture.store import StoreError

FEW = 50  # units: of more, single stages are not told
SHOWN = 10  # failures whose logs are printed


def go_sweep(
    experiments: dict[str, Experiment],
    out: Path,
    recipe: Recipe | None,
    asked: Asked,
    time_limit: float | None,
    quiet: bool,
    as_json: bool,
    sinks: tuple[str, ...] = (),
) -> int:
    """Run them all, say how each ended; the exit code."""
    units = sum(experiment.units() for experiment in experiments.values())
    launcher = asked.choose(units, {experiment.device for experiment in experiments.values()})
    console = Plain(stderr=True)

    def note(line: str) -> None:
        if not quiet:
            console.print(line, markup=False, soft_wrap=True)

    with ExitStack() as stack:
        logs = out.parent / f"{out.name}.logs"
        opened = {
            name: [stack.enter_context(Sink(sink, logs / name / sink, note)) for sink in sinks]
            for name in experiments
        }

        def watch(unit: str, event: dict[str, Any]) -> None:
            for sink in opened[unit.partition("/")[0]]:
                sink.watch(unit, event)
            if (line := _line(unit, event, units <= FEW)) is not None:
                note(line)

        swept = sweep(
            experiments, out, launcher, recipe=recipe, watch=watch, notify=note,
            time_limit=time_limit, publish=asked.publish,
            finished=lambda name: note(f"{name}: {conclusion(out / name)}"),
        )  # fmt: skip
    return _concluded(out, swept, as_json)


def _line(unit: str, event: dict[str, Any], stages: bool) -> str | None:
    """What a person sees of an event; None: nothing."""
    if event["event"] == "stage" and stages:
        return (
            f"{unit.partition('/')[0]}: seed {event['seed']}  T = {event['size']:<6} "
            f"{ending(event)}  P = {event['spent']:,}"
        )
    if event["event"] != "unit":
        return None
    if event["state"] == "retried":
        return f"{unit} died with exit code {event['code']} and is tried again"
    if event["state"] == "ended" and event["code"] not in (DONE, INTERRUPTED):
        return f"{unit} failed with exit code {event['code']}; the others go on"
    return None


def conclusion(folder: Path) -> str:
    """One line on a run: its verdict, or why there is none."""
    try:
        summary = summarise(folder)
        verdict, reason = summary.judged
    except StoreError as error:
        return str(error)
    return verdict.sentence(summary.delta) if verdict else f"no verdict: {reason}"


def _concluded(out: Path, swept: Swept, as_json: bool) -> int:
    draw_sweep(out, as_json)
    if as_json:
        verdicts = {name: conclusion(out / name) for name in swept.complete}
        failed = [{"unit": o.name, "code": o.code} for o in swept.failed]
        print_json({"complete": verdicts, "left": swept.left, "failed": failed})
    total = len(swept.complete) + len(swept.left)
    echo(f"{out}: {len(swept.complete)} of {total} runs are complete", err=as_json)
    for one in swept.failed[:SHOWN]:
        echo(f"Error: {one.name} failed with exit code {one.code} after "
                   f"{one.tries} tries\n{one.log.rstrip()}", err=True)  # fmt: skip
    if len(swept.failed) > SHOWN:
        more = len(swept.failed) - SHOWN
        echo(f"{more} more failures: the logs are in each run's meta.json", err=True)
    if swept.failed:
        return FAILED
    if swept.left:
        echo("Stopped; everything is kept. The same command continues", err=True)
        return INTERRUPTED
    return DONE


def draw_sweep(out: Path, as_json: bool) -> None:
    """Write the page that compares the runs. That it cannot be written takes nothing away."""
    try:
        summaries = [s for s in summarise_sweep(out) if not is_pac(s)]
        if summaries:
            echo(f"page: {write_page(summaries, out / PAGE)}", err=as_json)
    except StoreError as error:
        echo(f"no page: {error}", err=True)
