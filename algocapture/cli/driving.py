"""What `run` and `resume` share: a launcher, progress, the verdict at the end."""

from __future__ import annotations

import json
import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from algocapture.cli.launching import Asked
from algocapture.cli.output import Plain
from algocapture.cli.progress import Progress
from algocapture.cli.text import echo
from algocapture.cli.verdict import conclude
from algocapture.experiment import Experiment, Recipe, Sink, UnitsFailed, drive
from algocapture.launch import DONE, FAILED, INTERRUPTED
from algocapture.report import PAGE, Summary, summarise, write_page
from algocapture.report.together import is_pac
from algocapture.store import StoreError


def go(
    experiment: Experiment,
    out: Path,
    recipe: Recipe | None,
    asked: Asked,
    time_limit: float | None,
    quiet: bool,
    as_json: bool,
    sinks: tuple[str, ...] = (),
) -> int:
    """Run, show, judge; the exit code."""
    console = Plain(stderr=True)
    launcher = asked.choose(experiment.units(), {experiment.device})
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(experiment, console, quiet))
        logs = out.parent / f"{out.name}.logs"
        opened = [stack.enter_context(Sink(name, logs / name, progress.note)) for name in sinks]

        def watch(unit: str, event: dict[str, Any]) -> None:
            progress.watch(unit, event)
            for sink in opened:
                sink.watch(unit, event)

        try:
            complete = drive(
                experiment, out, launcher, recipe=recipe, watch=watch, notify=progress.note,
                time_limit=time_limit, publish=asked.publish,
            )  # fmt: skip
        except UnitsFailed as error:
            echo(f"Error: {error}", err=True)
            return FAILED
    if not complete:
        again = _again(out, recipe, asked)
        echo(f"Stopped; everything is kept. Continue with:\n  {again}", err=True)
        return INTERRUPTED
    summary = summarise(out)
    if is_pac(summary):
        conclude(summary, as_json)
        return DONE
    draw(summary, as_json)
    _, reason = summary.judged
    if reason:  # the work is done, and too little for a verdict, as with one seed
        echo(f"No verdict: {reason}", err=True)
    else:
        conclude(summary, as_json)
    return DONE


def draw(summary: Summary, as_json: bool) -> None:
    """Write the run's page. That it cannot be written takes nothing from the result."""
    try:
        page = write_page([summary], summary.path / PAGE)
        echo(f"page: {page}", err=as_json)
    except StoreError as error:
        echo(f"no page: {error}", err=True)


def announce(plan: dict[str, Any]) -> str:
    """A plan as text: what `--dry-run` prints."""
    lines = [f"folder    {plan['folder']}", f"identity  {plan['identity']}"]
    lines += [
        f"unit {u['unit']:<4} seeds {u['seeds']}, {u['threads']} threads" for u in plan["units"]
    ]
    lines.append("sizes     " + ", ".join(map(str, plan["sizes"])))
    cost = plan["estimate"]
    lines += _costs(cost) if cost else ["a step    costs nothing; refits cost what P asks for"]
    lines += [f"expected  {kind}: {what}" for kind, what in plan["takes"].items()]
    return "\n".join([*lines, json.dumps(plan["experiment"], indent=2)])


def _costs(cost: dict[str, Any]) -> list[str]:
    seconds, hours = "time not measured: the device is not here", ""
    if cost["step_seconds"] is not None:
        seconds = f"measured: {cost['step_seconds']:.3g} s"
        hours = f", {cost['hours_at_most']:.1f} hours in one unit"
    return [
        f"a step    {cost['step_flops']:.2e} FLOPs at T0 ({seconds}), "
        f"{cost['largest_step_flops']:.2e} at the largest size",
        f"at most   {cost['flops_at_most']:.1e} training FLOPs{hours}, if every stage used up its "
        "limit on samples; evaluation comes on top",
    ]


def _again(out: Path, recipe: Recipe | None, asked: Asked) -> str:
    words = ["algocapture", "resume", str(out)]
    words += [] if asked.publish is None else ["--publish", asked.publish]
    if recipe is not None:
        words += ["--recipe", str(recipe.path)]
        words += [word for change in recipe.changes for word in ("--set", change)]
    return shlex.join(words)
