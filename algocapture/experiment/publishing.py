"""Between a run's folder and the URL that it is published to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from algocapture.experiment.configuration import Configuration
from algocapture.experiment.unit import unit_folder
from algocapture.store import RunFolder
from algocapture.store.publish import Published

WAIT = 10.0  # seconds for a former worker of a unit to end: its driver may just have been killed


def reconcile(run: RunFolder, experiment: Configuration, published: Published) -> None:
    """Every unit that is here or there stands afterwards at the further of both, here and there."""
    here = {unit for unit in range(experiment.units()) if run.has_unit(unit)}
    for unit in sorted((here | set(published.units())) & set(range(experiment.units()))):
        with unit_folder(run, experiment, unit, WAIT) as folder:
            pulled = published.pull(run, folder, unit)
            found = folder.restore()
            if found is not None and not pulled:
                published.push(run, unit, found.stages)


def fetch(url: str, out: Path | str, notify: Callable[[str], None]) -> bool:
    """Make the folder of a published run, or bring it up to date; True if its result is there.

    Nothing of it is executed: a run of a user's own classes is only copied.
    """
    published = Published(url)
    _, body = published.described()
    rest = {"recipe": body["recipe"], "notify": notify}
    with RunFolder.enter(out, body["identity"], body["extension"], **rest) as run:
        exact = body["identity"].get("device") == "cpu"
        for unit in published.units():
            with run.unit(unit, published.seeds(run, unit), exact=exact, wait=WAIT) as folder:
                published.pull(run, folder, unit)
                folder.restore()
        published.get_top(run)
        return run.read_result() is not None


def copy_of(published: Published, folder: Path) -> RunFolder:
    """An empty folder made the run's, for one unit of it to work in."""
    (folder / "config.json").write_bytes(published.config())
    return RunFolder(folder)
