"""`algocapture verdict`: what the curves of one run say, or of runs at several deltas."""

from __future__ import annotations

from pathlib import Path

import click

from algocapture.cli.output import print_json
from algocapture.report import Summary, summarise, summarise_sweep
from algocapture.report.together import by_delta, is_pac, pac, pac_json, together
from algocapture.stats import Deltas
from algocapture.store import StoreError
from algocapture.store.sweep import sweep_runs


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path),
                metavar="DIR [DIR ...]")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def verdict(folders: tuple[Path, ...], as_json: bool) -> None:
    """Judge the run in DIR, finished or not.

    Runs that differ in nothing but delta are judged together as well: the definition asks for
    every small delta. Of a sweep, every run is judged, and those that differ in delta together.
    """
    if len(folders) == 1 and sweep_runs(folders[0]):
        _sweep(folders[0], as_json)
        return
    summaries = [summarise(folder) for folder in folders]
    if len(summaries) == 1:
        conclude(summaries[0], as_json)
        return
    whole, reason = _whole(summaries)
    if as_json:
        runs = [{"folder": str(s.path)} | to_json(s) for s in summaries]
        print_json({"together": whole and whole.to_json(), "reason": reason, "runs": runs})
        return
    for summary in summaries:
        click.echo(f"{summary.path}")
        conclude(summary, as_json)
        click.echo("")
    if whole is None:
        click.echo(f"Not judged together: {reason}")
    else:
        _print_whole(whole)


def _sweep(folder: Path, as_json: bool) -> None:
    summaries = summarise_sweep(folder)
    curved = [s for s in summaries if not is_pac(s)]
    groups = by_delta([s for s in curved if s.judged[0] is not None])
    named = {", ".join(s.path.name for s in group): together(group) for group in groups}
    if as_json:
        runs = {s.path.name: _judged(s) for s in summaries}
        deltas = {names: whole.to_json() for names, whole in named.items()}
        print_json({"runs": runs, "together": deltas})
        return
    for summary in summaries:
        click.echo(f"{summary.path.name}: ", nl=False)
        if not is_pac(summary) and summary.judged[0] is None:
            click.echo(f"No verdict: {summary.judged[1]}")
        else:
            conclude(summary, False)
    for names, whole in named.items():
        click.echo(f"\n{names}:")
        _print_whole(whole)


def _judged(summary: Summary) -> dict[str, object]:
    if not is_pac(summary) and summary.judged[0] is None:
        return {"outcome": None, "reason": summary.judged[1]}
    return to_json(summary)


def conclude(summary: Summary, as_json: bool) -> None:
    """The verdict, as `run` and `verdict` print it."""
    if as_json:
        print_json(to_json(summary))
        return
    if is_pac(summary):
        _print_pac(summary)
        return
    found = summary.verdict()
    click.echo(found.sentence(summary.delta))
    _note_incomplete(summary)
    for caveat in found.caveats:
        click.echo(f"  note: {caveat}")
    if found.advice:
        click.echo(f"  advice: {found.advice}")


def to_json(summary: Summary) -> dict[str, object]:
    return pac_json(summary) if is_pac(summary) else summary.to_json()


def _whole(summaries: list[Summary]) -> tuple[Deltas | None, str]:
    if any(map(is_pac, summaries)):
        return None, "a replication has no exponent"
    try:
        return together(summaries), ""
    except StoreError as error:
        return None, str(error)


def _print_whole(whole: Deltas) -> None:
    click.echo(f"Together: {whole.sentence}")
    for row in whole.table():
        click.echo(
            f"  delta = {row['delta']:g}: P0 {row['P0']:,.0f}, C0 {row['C0']:,.0f} samples, "
            f"exponent {row['exponent']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        )
    powers = whole.to_json()["powers"].items()
    known = [f"{name} as delta^-{power:.2f}" for name, power in powers if power is not None]
    if known:
        click.echo(f"  between the extreme deltas: {', '.join(known)}".replace("^--", "^"))


def _print_pac(summary: Summary) -> None:
    cost = summary.identity["protocol"]["cost"]
    click.echo(
        f"At delta = {summary.delta:g}, adaptations of {cost:g} log(T/T0) samples; "
        "beta: how often one fails; alpha: the share of base models for which too many do."
    )
    for statement in pac(summary):
        click.echo(f"  {statement.sentence()}")
    _note_incomplete(summary)


def _note_incomplete(summary: Summary) -> None:
    if not summary.complete:
        click.echo("  note: the run is not complete; this is what its decided stages say")
