"""From an experiment and a folder to a finished run."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import algocapture
from algocapture.experiment.configuration import Configuration
from algocapture.experiment.publishing import WAIT, reconcile
from algocapture.experiment.unit import require_device, work
from algocapture.launch import DONE, INTERRUPTED, Emit, Launcher, Outcome, Refused, Stop, Unit
from algocapture.launch.base import Watch
from algocapture.protocol.records import is_final
from algocapture.store import RunFolder, StoreError
from algocapture.store.contents import META, need
from algocapture.store.publish import Published
from algocapture.store.shape import mismatch
from algocapture.studies.base import Study


@dataclass(frozen=True)
class Recipe:
    """The user's own file that defines an experiment, as far as a run's folder cares."""

    path: Path
    digest: str  # SHA-256 of its bytes
    changes: tuple[str, ...] = ()  # FIELD=VALUE, as on the command line


class UnitsFailed(RuntimeError):
    """Some units failed; the others are finished and kept."""

    def __init__(self, outcomes: list[Outcome]) -> None:
        self.outcomes = outcomes
        lines = [f"{o.name} failed with exit code {o.code} after {o.tries} tries" for o in outcomes]
        logs = [f"--- {o.name}\n{o.log.rstrip()}" for o in outcomes if o.log]
        super().__init__("\n".join(lines + logs))


def drive(
    experiment: Configuration,
    out: Path | str,
    launcher: Launcher,
    *,
    recipe: Recipe | None = None,
    watch: Watch = lambda name, event: None,
    notify: Callable[[str], None] | None = None,
    time_limit: float | None = None,
    publish: str | None = None,
) -> bool:
    """Begin, continue or extend the run in `out`; True when it is complete.

    `publish`: a URL to which the run's state is published as it grows, and from which what came
    further there is taken.
    """
    if launcher.here:
        require_device(experiment.device)
    published = None if publish is None else Published(publish)
    with Stop(time_limit) as stop, enter(experiment, out, recipe, published, notify) as run:
        begun = time.time()
        if published is not None:
            reconcile(run, experiment, published)
        left = unfinished(run, experiment)
        way = Way(stop, recipe, published, launcher.here)
        outcomes = launcher.run(units_of(run, experiment, left, way), watch, stop)
        complete = conclude(run, experiment, begun, outcomes, published)
    if failed := [o for o in outcomes if o.code not in (DONE, INTERRUPTED)]:
        raise UnitsFailed(failed)
    return complete


@contextmanager
def enter(
    experiment: Configuration,
    out: Path | str,
    recipe: Recipe | None,
    published: Published | None,
    notify: Callable[[str], None] | None,
) -> Iterator[RunFolder]:
    """The run's folder, held; here and where it is published it is this run or none yet."""
    kwargs: dict[str, Any] = {} if notify is None else {"notify": notify}
    kwargs["recipe"] = None if recipe is None else recipe.digest
    with RunFolder.enter(out, experiment.identity(), experiment.extension(), **kwargs) as run:
        if published is not None:
            published.attach(run)
        yield run


@dataclass(frozen=True)
class Way:
    """How units reach their run."""

    stop: Callable[[], bool]
    recipe: Recipe | None = None
    published: Published | None = None
    here: bool = True  # they run where the folder is


def units_of(
    run: RunFolder, experiment: Configuration, left: list[int], way: Way, within: str = ""
) -> list[Unit]:
    """The units that are left, as work for a launcher; `within` is put before their names."""
    return [
        Unit(
            name=f"{within}unit-{unit:03d}",
            call=partial(_call, run, experiment, unit, way),
            argv=argv(run, unit, way.recipe, way.published, way.here),
            threads=experiment.threads,
        )
        for unit in left
    ]


def conclude(
    run: RunFolder,
    experiment: Configuration,
    begun: float,
    outcomes: list[Outcome],
    published: Published | None = None,
) -> bool:
    """The end of a session: meta.json and, when nothing is left, result.json; is it complete?"""
    if published is not None:
        reconcile(run, experiment, published)
    complete = not unfinished(run, experiment)
    write_meta(run, experiment, begun, outcomes)
    if complete:
        run.write_result()
    if published is not None:
        published.put_top(run, "meta")
        if complete:
            published.put_top(run, "result")
    return complete


def unfinished(run: RunFolder, experiment: Configuration) -> list[int]:
    """The units that have something left to do."""
    return [u for u in range(experiment.units()) if not _finished(run, experiment, u)]


def _finished(run: RunFolder, experiment: Configuration, unit: int) -> bool:
    for seed in experiment.seeds_of(unit):
        try:
            records = run.stages(seed)
            for record in records[-1:]:
                need(record, "index", "outcome", "limit", "looks", "following", "flops")
        except StoreError as error:  # damaged or missing: the unit's checkpoint restores it
            run.notify(str(error))
            return False
        if not records or not is_final(records[-1], experiment.protocol, experiment.limits):
            return False
    return True


def _call(run: RunFolder, experiment: Configuration, unit: int, way: Way, emit: Emit) -> int:
    try:
        return work(
            run, experiment, unit, emit=emit, stop=way.stop, wait=WAIT, published=way.published
        )
    except StoreError as error:  # a full disk, a folder in use: a traceback would say no more
        raise Refused(str(error)) from error


def argv(
    run: RunFolder,
    unit: int,
    recipe: Recipe | None,
    published: Published | None = None,
    here: bool = True,
) -> tuple[str, ...]:
    """The command of a unit. Elsewhere the URL, if there is one, stands for the folder."""
    place = str(run.path.absolute())
    if published is not None and not here:
        place = published.url
    # -P: Python itself would look for every module in the current folder first.
    command = [sys.executable, "-P", "-m", "algocapture", "work", place, "--unit", str(unit)]
    if published is not None and here:
        command += ["--publish", published.url]
    if recipe is not None:
        command += ["--recipe", str(recipe.path)]
        command += [word for change in recipe.changes for word in ("--set", change)]
    return tuple(command)


def write_meta(
    run: RunFolder, experiment: Configuration | Study, begun: float, outcomes: list[Outcome]
) -> None:
    """Host facts and times, one entry for each time the run was worked on."""
    session = environment(experiment) | {
        "begun": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begun)),
        "seconds": round(time.time() - begun, 1),
        "units": {o.name: _ended(o) for o in outcomes},
    }
    held = run.read_meta()
    former = [] if mismatch(held, META) else held.get("sessions", [])
    run.write_meta({"sessions": [*former, session]})


def _ended(outcome: Outcome) -> dict[str, Any]:
    failed = outcome.code not in (DONE, INTERRUPTED)
    return {"code": outcome.code, "tries": outcome.tries} | ({"log": outcome.log} if failed else {})


def environment(experiment: Configuration | Study) -> dict[str, Any]:
    """Host facts: nothing that decides anything."""
    device = torch.device(experiment.device)
    name = platform.processor()
    if device.type == "cuda":  # a driver of a cluster may have none itself
        there = torch.cuda.is_available()
        name = torch.cuda.get_device_name(device) if there else "CUDA on another machine"
    return {
        "algocapture": algocapture.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "device": name or platform.machine(),
        "cores": os.cpu_count(),
        "threads": experiment.threads,
    }
