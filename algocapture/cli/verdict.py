"""`algocapture verdict`: what the curves of one run say, or of runs at several deltas."""

from __future__ import annotations

from pathlib import Path

import click

from algocapture.cli.output import print_json
from algocapture.cli.text import echo
from algocapture.launch import DONE, FAILED
from algocapture.report import Summary, summarise, summarise_sweep
from algocapture.report.together import by_delta, is_pac, pac, pac_json, together
from algocapture.stats import Deltas
from algocapture.store import StoreError
from algocapture.store.sweep import sweep_runs


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path),
                metavar="DIR [DIR ...]")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def verdict(folders: tuple[Path, ...], as_json: bool) -> int:
    """Judge the run in DIR, finished or not.

    Runs that differ in nothing but delta are judged together as well: the definition asks for
    every small delta. Of a sweep, every run is judged, and those that differ in delta together.
    """
    if len(folders) == 1 and sweep_runs(folders[0]):
        _sweep(folders[0], as_json)
        return DONE
    summaries = [summarise(folder) for folder in folders]
    if len(summaries) == 1:
        conclude(summaries[0], as_json)
        return DONE
    whole, reason = _whole(summaries)
    if as_json:
        runs = [{"folder": str(s.path)} | _judged(s) for s in summaries]
        print_json({"together": whole and whole.to_json(), "reason": reason, "runs": runs})
        return FAILED if any(map(_silent, summaries)) else DONE
    for summary in summaries:
        echo(f"{summary.path}")
        _conclude_or_why(summary)
        echo("")
    if whole is None:
        echo(f"Not judged together: {reason}")
    else:
        _print_whole(whole)
    return FAILED if any(map(_silent, summaries)) else DONE


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
        echo(f"{summary.path.name}: ", nl=False)
        _conclude_or_why(summary)
    for names, whole in named.items():
        echo(f"\n{names}:")
        _print_whole(whole)


def _conclude_or_why(summary: Summary) -> None:
    if why := _silent(summary):
        echo(f"No verdict: {why}")
    else:
        conclude(summary, False)


def _judged(summary: Summary) -> dict[str, object]:
    why = _silent(summary)
    return {"outcome": None, "reason": why} if why else to_json(summary)


def conclude(summary: Summary, as_json: bool) -> None:
    """The verdict, as `run` and `verdict` print it."""
    if as_json:
        print_json(to_json(summary))
        return
    if is_pac(summary):
        _print_pac(summary)
        return
    found = summary.verdict()
    echo(found.sentence(summary.delta))
    _note_incomplete(summary)
    for line in found.beside():
        echo(f"  {line}")
    for caveat in found.caveats:
        echo(f"  note: {caveat}")
    if found.advice:
        echo(f"  advice: {found.advice}")


def to_json(summary: Summary) -> dict[str, object]:
    return pac_json(summary) if is_pac(summary) else summary.to_json()


def _silent(summary: Summary) -> str:
    """Why its curves allow no verdict; empty if they do."""
    return "" if is_pac(summary) else summary.judged[1]


def _whole(summaries: list[Summary]) -> tuple[Deltas | None, str]:
    if any(map(is_pac, summaries)):
        return None, "a replication has no exponent"
    if silent := [s for s in summaries if _silent(s)]:
        return None, f"{silent[0].path} has no verdict"
    try:
        return together(summaries), ""
    except StoreError as error:
        return None, str(error)


def _print_whole(whole: Deltas) -> None:
    echo(f"Together: {whole.sentence}")
    for row in whole.table():
        echo(
            f"  delta = {row['delta']:g}: P0 {row['P0']:,.0f}, C0 {row['C0']:,.0f} samples, "
            f"exponent {row['exponent']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        )
    powers = whole.to_json()["powers"].items()
    known = [f"{name} as delta^{-p + 0.0:.2f}" for name, p in powers if p is not None]
    if known:
        echo(f"  between the extreme deltas: {', '.join(known)}".replace("^-0.00", "^0.00"))


def _print_pac(summary: Summary) -> None:
    cost = summary.identity["protocol"]["cost"]
    echo(
        f"At delta = {summary.delta:g}, adaptations of {cost:g} log(T/T0) samples; "
        "beta: how often one fails; alpha: the share of base models for which too many do."
    )
    for statement in pac(summary):
        echo(f"  {statement.sentence()}")
    _note_incomplete(summary)


def _note_incomplete(summary: Summary) -> None:
    if not summary.complete:
        echo("  note: the run is not complete; this is what its decided stages say")
