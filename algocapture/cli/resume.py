"""`algocapture resume`: continue a run, or extend it."""

from __future__ import annotations

from pathlib import Path

import click

from algocapture.cli.driving import go
from algocapture.cli.launching import Asked, launching
from algocapture.cli.loading import load_run, load_study, load_sweep
from algocapture.cli.run import SINKS
from algocapture.cli.studying import go_study
from algocapture.cli.sweeping import go_sweep
from algocapture.store import RunFolder
from algocapture.store.sweep import sweep_runs


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--recipe", help="The file that defines the user's own task or module.")
@click.option("--set", "changes", multiple=True, metavar="FIELD=VALUE",
              help="Extend: seeds=9, limits.largest=2000, limits.samples=10000000.")  # fmt: skip
@launching
@click.option("--time-limit", type=float, metavar="SECONDS", help="Then stop, resumable.")
@click.option("--sink", "sinks", multiple=True, type=click.Choice(SINKS), help="Log there too.")
@click.option("--quiet", is_flag=True, help="Only the verdict.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def resume(
    folder: Path,
    recipe: str | None,
    changes: tuple[str, ...],
    asked: Asked,
    time_limit: float | None,
    sinks: tuple[str, ...],
    quiet: bool,
    as_json: bool,
) -> int:
    """Continue the run in FOLDER, or all runs of a sweep, from their last checkpoints.

    With --set, more seeds, a larger size or larger limits extend a finished run.
    """
    if sweep_runs(folder):
        experiments, user = load_sweep(folder, recipe, changes)
        return go_sweep(experiments, folder, user, asked, time_limit, quiet, as_json, sinks)
    run = RunFolder(folder)
    if run.is_study:
        study, user = load_study(run, recipe, changes)
        return go_study(study, folder, user, asked, time_limit, quiet, as_json)
    experiment, user = load_run(run, recipe, changes)
    return go(experiment, folder, user, asked, time_limit, quiet, as_json, sinks)
