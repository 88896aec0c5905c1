"""What `run` and `resume` share: a launcher, progress, the verdict at the end."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from algocapture.cli.progress import Progress
from algocapture.cli.verdict import conclude
from algocapture.experiment import Experiment, Recipe, UnitsFailed, drive
from algocapture.launch import DONE, FAILED, INTERRUPTED, Inline, Launcher, Processes
from algocapture.report import summarise


def go(
    experiment: Experiment,
    out: Path,
    recipe: Recipe | None,
    launcher: str | None,
    time_limit: float | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run, show, judge; the exit code."""
    console = Console(stderr=True, highlight=False)
    with Progress(experiment, console, quiet) as progress:
        try:
            complete = drive(
                experiment, out, choose(launcher, experiment), recipe=recipe,
                watch=progress.watch, notify=progress.note, time_limit=time_limit,
            )  # fmt: skip
        except UnitsFailed as error:
            click.echo(f"Error: {error}", err=True)
            return FAILED
    if not complete:
        click.echo(
            f"Stopped; everything is kept. Continue with:\n  {_again(out, recipe)}", err=True
        )
        return INTERRUPTED
    conclude(summarise(out), as_json)
    return DONE


def choose(name: str | None, experiment: Experiment) -> Launcher:
    """On the CPU units run side by side; a GPU is not shared."""
    if name is None:
        name = "processes" if experiment.device == "cpu" and experiment.units() > 1 else "inline"
    return Processes() if name == "processes" else Inline()


def announce(plan: dict[str, Any]) -> str:
    """A plan as text: what `--dry-run` prints."""
    lines = [f"folder    {plan['folder']}", f"identity  {plan['identity']}"]
    lines += [
        f"unit {u['unit']:<4} seeds {u['seeds']}, {u['threads']} threads" for u in plan["units"]
    ]
    lines.append("sizes     " + ", ".join(map(str, plan["sizes"])))
    return "\n".join([*lines, json.dumps(plan["experiment"], indent=2)])


def _again(out: Path, recipe: Recipe | None) -> str:
    words = ["algocapture", "resume", str(out)]
    if recipe is not None:
        words += ["--recipe", str(recipe.path)]
        words += [word for change in recipe.changes for word in ("--set", change)]
    return shlex.join(words)
