"""`algocapture work`: one unit of a run in this process. Launchers call it; people need not."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from algocapture.cli.loading import load_study, of_run
from algocapture.config import ConfigError
from algocapture.experiment import measure_part
from algocapture.experiment import work as work_on
from algocapture.experiment.publishing import WAIT, copy_of
from algocapture.launch import Emit, Stop, connect
from algocapture.store import RunFolder
from algocapture.store.publish import Published


@click.command(hidden=True)
@click.argument("place")
@click.option("--unit", type=int, required=True)
@click.option("--recipe")
@click.option("--publish")
@click.option("--set", "changes", multiple=True)
def work(
    place: str, unit: int, recipe: str | None, publish: str | None, changes: tuple[str, ...]
) -> int:
    """Bring one unit of the run in PLACE to its end: a folder, or a URL that it is published to."""
    emit = connect()
    if "://" not in place:
        published = None if publish is None else Published(publish)
        return _work(RunFolder(place), published, unit, recipe, changes, emit)
    published = Published(place)
    with tempfile.TemporaryDirectory(prefix="algocapture-") as folder:
        return _work(copy_of(published, Path(folder)), published, unit, recipe, changes, emit)


def _work(
    run: RunFolder,
    published: Published | None,
    unit: int,
    recipe: str | None,
    changes: tuple[str, ...],
    emit: Emit,
) -> int:
    if run.is_study:
        study, _ = load_study(run, recipe, changes)
        run.require(study.identity(), None)
        return measure_part(run, study, study.parts()[unit], emit)
    experiment = of_run(run, recipe, changes)
    if not 0 <= unit < experiment.units():
        raise ConfigError(f"--unit {unit}: {run.path} has units 0 to {experiment.units() - 1}")
    with Stop() as stop:
        return work_on(run, experiment, unit, emit=emit, stop=stop, wait=WAIT, published=published)
