"""`algocapture work`: one unit of a run in this process. Launchers call it; people need not."""

from __future__ import annotations

from pathlib import Path

import click

from algocapture.cli.loading import load
from algocapture.config import ConfigError, difference
from algocapture.experiment import stored_experiment
from algocapture.experiment import work as work_on
from algocapture.launch import Stop, connect
from algocapture.store import RunFolder

WAIT = 10.0  # seconds for a former worker to end: its driver may just have been killed


@click.command(hidden=True)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--unit", type=int, required=True)
@click.option("--recipe")
@click.option("--set", "changes", multiple=True)
def work(folder: Path, unit: int, recipe: str | None, changes: tuple[str, ...]) -> int:
    """Bring one unit of the run in FOLDER to its end."""
    emit = connect()
    run = RunFolder(folder)
    if recipe is None:
        experiment = stored_experiment(run)
    else:
        experiment = load(recipe, changes).only()
        if lines := difference(run.identity, experiment.identity()):
            raise ConfigError("the recipe is not this run's:\n  " + "\n  ".join(lines))
    with Stop() as stop:
        return work_on(run, experiment, unit, emit=emit, stop=stop, wait=WAIT)
