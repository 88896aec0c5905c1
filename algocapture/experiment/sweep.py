"""Several experiments by name, run together: the units of all side by side, each run in its folder.

A run is opened when its first unit is handed to the launcher and closed, with its result.json,
when its last one has ended: what is held in memory does not grow with the sweep.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from algocapture.experiment.driver import Recipe, Way, conclude, enter, unfinished, units_of
from algocapture.experiment.publishing import reconcile
from algocapture.experiment.running import Experiment
from algocapture.experiment.tally import Tally
from algocapture.experiment.unit import require_device
from algocapture.launch import DONE, INTERRUPTED, Launcher, Outcome, Stop, Unit
from algocapture.launch.base import Event, Watch
from algocapture.store import RunFolder, StoreError
from algocapture.store.publish import Published
from algocapture.store.sweep import check_name, hold_sweep

Notify = Callable[[str], None]
MOST_LOGS = 100  # failures whose logs are held in memory


@dataclass(frozen=True)
class Swept:
    """How a sweep ended: the names of the runs that are complete, of the others, and the units
    and runs that failed with what they said."""

    complete: tuple[str, ...]
    left: tuple[str, ...]
    failed: tuple[Outcome, ...]


def sweep(
    experiments: Mapping[str, Experiment],
    out: Path | str,
    launcher: Launcher,
    *,
    recipe: Recipe | None = None,
    watch: Watch = lambda name, event: None,
    notify: Notify = lambda message: None,
    finished: Callable[[str], None] = lambda name: None,
    time_limit: float | None = None,
    publish: str | None = None,
) -> Swept:
    """Begin, continue or extend the runs in `out`, each in the folder of its name.

    Nothing begins unless every run may be entered. A unit that fails never stops the others.
    `publish`: a URL, to whose folder of its name each run is published.
    `finished` is called with a run's name when its result is there.
    """
    out = Path(out)
    for device in {e.device for e in experiments.values()} if launcher.here else ():
        require_device(device)
    for name in experiments:
        check_name(name)
    with Stop(time_limit) as stop, hold_sweep(out, notify):
        way = Way(stop, recipe, None, launcher.here)
        session = _Session(experiments, out, way, publish, watch, notify, finished)
        for name in experiments:
            with session.enter(name):
                pass
        try:
            launcher.run(session.units(), session.watch, stop)
        finally:
            session.close()
    return session.swept()


@dataclass
class _Open:
    """A run with units in the launcher's hands."""

    run: RunFolder
    held: ExitStack
    published: Published | None
    waits: dict[str, int]  # unit -> tries so far
    begun: float
    outcomes: list[Outcome] = field(default_factory=list)


@dataclass
class _Session:
    experiments: Mapping[str, Experiment]
    out: Path
    way: Way
    url: str | None
    show: Watch
    notify: Notify
    finished: Callable[[str], None]
    open: dict[str, _Open] = field(default_factory=dict)
    complete: set[str] = field(default_factory=set)
    failed: list[Outcome] = field(default_factory=list)

    def __post_init__(self) -> None:
        units = {name: experiment.units() for name, experiment in self.experiments.items()}
        self.tally = Tally(self.out, units)

    def published(self, name: str) -> Published | None:
        return None if self.url is None else Published(f"{self.url.rstrip('/')}/{name}")

    def enter(self, name: str) -> AbstractContextManager[RunFolder]:
        experiment, published = self.experiments[name], self.published(name)
        return enter(experiment, self.out / name, self.way.recipe, published, self.notify)

    def units(self) -> Iterator[Unit]:
        for name in self.experiments:
            yield from self._begin(name)

    def _begin(self, name: str) -> list[Unit]:
        experiment, held = self.experiments[name], ExitStack()
        published = self.published(name)
        try:
            run = held.enter_context(self.enter(name))
            if published is not None:
                reconcile(run, experiment, published)
        except StoreError as error:  # such as a run that is resumed by itself meanwhile
            held.close()
            self._fail(Outcome(name, 1, 1, str(error)))
            return []
        left = unfinished(run, experiment)
        way = replace(self.way, published=published)
        units = units_of(run, experiment, left, way, within=f"{name}/")
        waits = {unit.name: 1 for unit in units}
        self.open[name] = _Open(run, held, published, waits, time.time())
        self.tally.opened(name, left, experiment, run)
        if not units:
            self._end(name)
        return units

    def watch(self, unit: str, event: Event) -> None:
        self.tally.watch(unit, event)
        self.show(unit, event)
        name = unit.partition("/")[0]
        state = event.get("state") if event.get("event") == "unit" else None
        if state == "retried":
            self.open[name].waits[unit] += 1
        elif state == "ended":
            opened = self.open[name]
            outcome = Outcome(unit, event["code"], opened.waits.pop(unit), event["log"])
            opened.outcomes.append(replace(outcome, name=unit.partition("/")[2]))
            if outcome.code not in (DONE, INTERRUPTED):
                self._fail(outcome)
            if not opened.waits:
                self._end(name)

    def _fail(self, outcome: Outcome) -> None:
        if len(self.failed) >= MOST_LOGS:  # meta.json has every log
            outcome = replace(outcome, log=outcome.log[-200:])
        self.failed.append(outcome)
        self.tally.failed(outcome)

    def _end(self, name: str) -> None:
        opened, experiment = self.open.pop(name), self.experiments[name]
        with opened.held:
            try:
                complete = conclude(
                    opened.run, experiment, opened.begun, opened.outcomes, opened.published
                )
            except StoreError as error:  # such as a full disk: the other runs go on
                self._fail(Outcome(name, 1, 1, str(error)))
                return
        if complete:
            self.complete.add(name)
            self.finished(name)

    def close(self) -> None:
        """What a stop left open: its session is recorded, its folder released."""
        for name in list(self.open):
            self._end(name)
        self.tally.write()

    def swept(self) -> Swept:
        complete = tuple(name for name in self.experiments if name in self.complete)
        left = tuple(name for name in self.experiments if name not in self.complete)
        return Swept(complete, left, tuple(self.failed))
