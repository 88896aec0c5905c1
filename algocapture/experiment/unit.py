"""One unit of work: its engine, advanced until all stages are decided, durable all along."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch

from algocapture.allocator import keep_freed_memory
from algocapture.experiment.configuration import Configuration
from algocapture.experiment.messages import Reporter
from algocapture.launch.base import DONE, INTERRUPTED, Emit
from algocapture.protocol import Decided, Engine
from algocapture.store import Checkpoint, RunFolder, StoreError, UnitFolder
from algocapture.store.publish import Published

CHECKPOINT_SECONDS = 30.0  # between checkpoints within a stage: what a crash can cost
CHEAP = 0.1  # seconds; a checkpoint that costs more is not written at every decision,
SHARE = 0.05  # but when this share of the time since the last one pays for it

Records = dict[int, list[dict[str, Any]]]  # by seed


def work(
    run: RunFolder,
    experiment: Configuration,
    unit: int,
    *,
    emit: Emit = lambda event: None,
    stop: Callable[[], bool] = lambda: False,
    wait: float = 0.0,
    published: Published | None = None,
) -> int:
    """Bring a unit to its end, from its last checkpoint if there is one; the exit code.

    With `published`, from the one that came furthest, here or there.
    """
    keep_freed_memory()
    seeds = experiment.seeds_of(unit)
    with threads(experiment.threads), unit_folder(run, experiment, unit, wait) as folder:
        if published is not None:
            published.pull(run, folder, unit)
        publish = None if published is None else partial(published.push, run, unit)
        return _Unit(folder, experiment, unit, Reporter(emit, seeds), publish).finish(stop)


def unit_folder(
    run: RunFolder, experiment: Configuration, unit: int, wait: float = 0.0
) -> UnitFolder:
    exact = torch.device(experiment.device).type == "cpu"
    return run.unit(unit, experiment.seeds_of(unit), exact=exact, wait=wait)


class _Unit:
    def __init__(
        self,
        folder: UnitFolder,
        experiment: Configuration,
        unit: int,
        report: Reporter,
        publish: Callable[[Records], None] | None,
    ) -> None:
        self.folder, self.experiment, self.report = folder, experiment, report
        self.publish, self.late = publish, ""
        self.seeds = experiment.seeds_of(unit)
        self.engine = engine(experiment, unit)
        self.records: Records = {seed: [] for seed in self.seeds}
        self.saved, self.cost = time.monotonic(), 0.0
        self.waiting = False  # a decision is not saved yet
        if (found := folder.restore()) is not None:
            self._continue(found)

    def _continue(self, found: Checkpoint) -> None:
        """A checkpoint that is whole may still be none that this engine wrote."""
        try:
            self.engine.load(dict(found.arrays), found.state)
        except (KeyError, IndexError, TypeError, ValueError, RuntimeError, OverflowError) as error:
            raise StoreError(
                f"the checkpoint of {self.folder.folder} is none of this experiment: {error}; "
                "remove it, and the unit starts afresh"
            ) from error
        self.records |= {seed: list(of) for seed, of in found.stages.items()}

    def finish(self, stop: Callable[[], bool]) -> int:
        while events := self.engine.advance():
            decided = [event for event in events if isinstance(event, Decided)]
            for event in decided:
                # A stage that a limit ended is replaced when a larger one let it go on.
                held = self.records[self.seeds[event.member]]
                held[event.record["index"] :] = [event.record]
            self.waiting = self.waiting or bool(decided)
            if self._due() or self._to_keep(decided):
                self._save(decided)
            self.report.events(events)
            if stop():
                self._save([])
                return self._ended(INTERRUPTED)
        if self.waiting:
            self._save([])
        return self._ended(DONE)

    def _due(self) -> bool:
        """A decision is saved at once where that is cheap; large states wait a little."""
        passed = time.monotonic() - self.saved
        if not self.waiting:
            return passed > CHECKPOINT_SECONDS
        return self.cost < CHEAP or self.cost < SHARE * passed or passed > CHECKPOINT_SECONDS

    def _to_keep(self, decided: list[Decided]) -> bool:
        """Weights are kept as they are at the decision."""
        return self.experiment.keep_models and bool(decided)

    def _ended(self, code: int) -> int:
        if self.late and self.publish is not None:
            self.publish(self.records)  # the last try may fail, and then the unit has failed
        return code

    def _save(self, decided: list[Decided]) -> None:
        begun = time.monotonic()
        arrays, state = self.engine.state()
        weights = {}
        for event in decided:
            if self.experiment.keep_models and event.record["outcome"] == "passed":
                weights[self.seeds[event.member]] = _weights(arrays, event.member)
        self.folder.commit(Checkpoint(arrays, state, self.records), models=weights)
        self._publish()
        self.saved, self.waiting = time.monotonic(), False
        self.cost = self.saved - begun

    def _publish(self) -> None:
        """A store that does not answer stops nobody before the end."""
        if self.publish is None:
            return
        try:
            self.publish(self.records)
            self.late = ""
        except StoreError as error:
            self.late = str(error)


def engine(experiment: Configuration, unit: int) -> Engine:
    """The engine of a unit at its start."""
    return Engine(
        experiment.task,
        experiment.learner,
        experiment.protocol,
        experiment.limits,
        [experiment.seed(number) for number in experiment.seeds_of(unit)],
        torch.device(experiment.device),
    )


def _weights(arrays: dict[str, np.ndarray], member: int) -> dict[str, np.ndarray]:
    prefix = f"learner/{member}/model/"
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


@contextmanager
def threads(number: int) -> Iterator[None]:
    """The thread count is part of the result: sums over threads round differently."""
    former = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(former)


def is_present(name: str) -> bool:
    """False for a GPU that another machine may have; a device that none has is an error."""
    try:
        require_device(name)
    except ValueError:
        if name.partition(":")[0] != "cuda":
            raise
        return False
    return True


def require_device(name: str) -> None:
    """Refuse a device that this machine does not have, before anything is written."""
    try:
        torch.empty(1, device=name).cpu()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        first = str(error).strip().partition("\n")[0]
        raise ValueError(f"device = {name!r} cannot be used here: {first}") from error
