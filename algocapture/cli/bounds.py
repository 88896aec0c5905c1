"""`algocapture bounds`: what the paper's bounds forbid, for all tasks or beside a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from algocapture.cli.output import console, print_json
from algocapture.cli.text import echo
from algocapture.complexity.bounds import (
    BOUNDS,
    FACTS,
    Outcome,
    Standing,
    of_task,
    overall,
    table,
)
from algocapture.report import Summary, summarise
from algocapture.report.together import is_pac

TRANSFORMERS = ("Transformer", "SimplifiedTransformer")


@click.command()
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path), metavar="[DIR ...]")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def bounds(folders: tuple[Path, ...], as_json: bool) -> None:
    """Which tasks do the paper's bounds forbid to be captured?

    With DIR, the bounds of that run's task beside its verdict. Only a lower bound on a task can
    forbid; what is allowed need not be captured. docs/complexity.md explains.
    """
    if not folders:
        _every_task(as_json)
        return
    runs = [_of_run(summarise(folder)) for folder in folders]
    if as_json:
        print_json(runs[0] if len(runs) == 1 else runs)
        return
    for run in runs:
        _print_run(run)


def _every_task(as_json: bool) -> None:
    standings = table()
    if as_json:
        print_json({
            "bounds": [vars(bound) | {"law": bound.law} for bound in BOUNDS],
            "tasks": {task: _to_json(task, held) for task, held in standings.items()},
        })  # fmt: skip
        return
    for bound in BOUNDS:
        echo(f"{bound.name}: what is captured has {bound.law}; {bound.regime}.")
        echo(f"  Rests on {bound.rests_on}.")
    echo("")
    shown = Table("task", *(bound.name for bound in BOUNDS), "solved in", box=None)
    for task, held in standings.items():
        shown.add_row(Text(task, "bold"), *(s.outcome for s in held), Text(_solved(task)))
    console().print(shown)
    echo("\nOnly a lower bound can forbid; what is allowed need not be captured.")
    for task, held in standings.items():
        for s in held:
            if s.outcome != "allowed":
                echo(f"{task}, {s.bound.name}: {s.outcome}, since {s.reason}.")


def _solved(task: str) -> str:
    """The best proved algorithm."""
    best = min(
        (f for f in FACTS[task] if f.side == "upper" and f.kind == "proved"),
        key=lambda f: f.exponent,
    )
    return f"T^{best.exponent:.3g}: {best.source}"


def _to_json(task: str, held: tuple[Standing, ...]) -> dict[str, Any]:
    return {
        "outcome": overall(held),
        "standings": [s.to_json() for s in held],
        "facts": [vars(fact) for fact in FACTS.get(task, ())],
    }


def _of_run(summary: Summary) -> dict[str, Any]:
    task = str(summary.identity["task"]["type"])
    held = of_task(task)
    return {
        "folder": str(summary.path),
        "task": task,
        **_to_json(task, held),
        **_verdict(summary, overall(held)),
    }


def _verdict(summary: Summary, outcome: Outcome) -> dict[str, Any]:
    """The verdict, what its exponent makes of the bounds, and whether the two agree."""
    if is_pac(summary):
        return {"verdict": None, "reason": "a replication has no exponent", "remarks": []}
    verdict, reason = summary.judged
    if verdict is None:
        return {"verdict": None, "reason": reason, "remarks": []}
    remarks = []
    if verdict.outcome == "captured" and outcome == "forbidden":
        remarks.append(
            "captured and forbidden at once: the range of sizes is too short, the network is far "
            "from its limit, or what the bound rests on does not hold here"
        )
    if (name := _no_transformer(summary.identity["learner"])) is not None:
        remarks.append(f"the bounds are about transformers, not about {name}")
    return {
        "verdict": verdict.outcome,
        "sentence": verdict.sentence(summary.delta),
        "adapted": {
            "kernel estimate": list(verdict.bounds.kernel),
            "forward pass": list(verdict.bounds.forward),
            "gamma": verdict.bounds.gamma,
        },
        "remarks": remarks,
    }


def _no_transformer(learner: dict[str, Any]) -> str | None:
    model = learner.get("model")
    if model is None or model.get("type") in TRANSFORMERS:
        return None
    return str(model.get("type", "this module"))


def _print_run(run: dict[str, Any]) -> None:
    echo(f"{run['folder']}: {run['task']}")
    for held in run["standings"]:
        echo(f"  {held['bound']['name']}, {held['law']}: {held['outcome']}; {held['reason']}")
    if run["verdict"] is None:
        echo(f"  No verdict: {run['reason']}")
        return
    echo(f"  {run['sentence']}")
    for name in ("kernel estimate", "forward pass"):
        low, high = run["adapted"][name]
        with_gamma = f" (gamma = {run['adapted']['gamma']:g})" if name == "forward pass" else ""
        echo(f"  At such an exponent the {name} bounds T^{low:.2f} to T^{high:.2f}{with_gamma}.")
    for remark in run["remarks"]:
        echo(f"  note: {remark}")
