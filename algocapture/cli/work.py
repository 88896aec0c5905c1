"""`algocapture work`: one unit of a run in this process. Launchers call it; people need not."""

from __future__ import annotations

from pathlib import Path

import click

from algocapture.cli.loading import load_study, of_run
from algocapture.config import ConfigError
from algocapture.experiment import measure_part
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
    if run.is_study:
        study, _ = load_study(run, recipe, changes)
        run.require(study.identity(), None)
        return measure_part(run, study, study.parts()[unit], emit)
    experiment = of_run(run, recipe, changes)
    if not 0 <= unit < experiment.units():
        raise ConfigError(f"--unit {unit}: {run.path} has units 0 to {experiment.units() - 1}")
    with Stop() as stop:
        return work_on(run, experiment, unit, emit=emit, stop=stop, wait=WAIT)
