"""A unit of work in a run's folder: its lock, its checkpoints and the stages they decide."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

import algocapture.store.files as files
import algocapture.store.records as records
import algocapture.store.stages as stages
from algocapture.store.files import StoreError
from algocapture.store.lock import Lock
from algocapture.store.stages import Body, Notify

KEEP = 2  # checkpoints of a unit: the newest, and the one before in case it is damaged


@dataclass(frozen=True)
class Checkpoint:
    """All that a unit needs to continue: arrays, a JSON state, the stages decided so far."""

    arrays: Mapping[str, np.ndarray]
    state: Body
    stages: Mapping[int, Sequence[Body]] = field(default_factory=dict)  # by seed


class UnitFolder:
    """Use as a context manager, `restore` first, then `commit` whenever work should be safe.

    One commit is one rename: a checkpoint carries the stages decided so far, and stage files
    are written from it. Whatever a crash leaves out, `restore` completes.
    """

    def __init__(
        self,
        root: Path,
        run: str,
        unit: int,
        seeds: Sequence[int],
        *,
        exact: bool,
        wait: float,
        notify: Notify,
    ) -> None:
        self.root = root
        self.run = run
        self.seeds = tuple(seeds)
        self.name = stages.unit_name(unit)
        self.folder = root / self.name
        self._exact = exact
        self._notify = notify
        self._lock = Lock(self.folder, wait=wait, notify=notify)
        self._held = ExitStack()
        self._good: list[int] = []  # checkpoints known to be whole, oldest first
        self._restored = False
        self._on_disk: dict[int, int] = {}  # seed -> stages that were checked or written

    def __enter__(self) -> UnitFolder:
        for folder in (self.folder, *(self.root / stages.seed_name(seed) for seed in self.seeds)):
            files.refuse_link(folder)
        files.make_folder(self.folder)
        self._held.enter_context(self._lock)
        for folder in (self.folder, *(self.root / stages.seed_name(seed) for seed in self.seeds)):
            files.clean(folder)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._restored = False
        self._held.close()

    def restore(self) -> Checkpoint | None:
        """The newest whole checkpoint, its stages completed on disk; None to start afresh."""
        self._good, self._on_disk, found = [], {}, None
        for number in reversed(stages.numbered(self.folder, stages.CHECKPOINT)):
            try:
                found = self._read(number)
            except StoreError as error:
                self._notify(f"{error}; the previous checkpoint is used")
                continue
            self._good = [number]
            break
        self._restored = True
        if not self._exact:
            self._forget_undone(found)
        if found is not None:
            self._write_stages(found.stages, self._pending(found.stages))
        return found

    def commit(
        self, checkpoint: Checkpoint, models: Mapping[int, Mapping[str, np.ndarray]] | None = None
    ) -> None:
        """Make the state and its stages durable. `models`: by seed, weights to keep for
        `load_model` under the number of the seed's last decided stage."""
        assert self._restored, "restore() comes first: it says what is on disk"
        self._lock.check()
        pending = self._pending(checkpoint.stages)  # refuses what contradicts the disk
        for seed, arrays in (models or {}).items():
            self._write_model(seed, len(checkpoint.stages[seed]) - 1, arrays)
        numbers = stages.numbered(self.folder, stages.CHECKPOINT)
        number = max(numbers, default=0) + 1
        path, place = self._checkpoint(number)
        body = {
            "state": checkpoint.state,
            "stages": {str(s): list(of) for s, of in checkpoint.stages.items()},
        }
        records.write_tensors(path, checkpoint.arrays, body, place=place, run=self.run)
        self._write_stages(checkpoint.stages, pending)
        self._good = [*self._good, number][-KEEP:]
        for old in numbers:
            if old not in self._good:
                files.remove(self._checkpoint(old)[0])

    def _checkpoint(self, number: int) -> tuple[Path, str]:
        place = f"{self.name}/checkpoint-{number:08d}"
        return self.root / f"{place}.safetensors", place

    def _read(self, number: int) -> Checkpoint:
        path, place = self._checkpoint(number)
        arrays, body = records.read_tensors(path, place=place, run=self.run)
        return parse(path, arrays, body)

    def _pending(self, decided: Mapping[int, Sequence[Body]]) -> list[tuple[int, int]]:
        """The stages, as (seed, index), that are not on disk yet."""
        foreign = [seed for seed in decided if seed not in self.seeds]
        if foreign:
            raise StoreError(f"seed {foreign[0]} is not of {self.name}, which has {self.seeds}")
        return [
            (seed, index)
            for seed, bodies in decided.items()
            for index in range(self._on_disk.get(seed, 0), len(bodies))
            if stages.must_write(self.root, self.run, seed, index, bodies[index],
                                 exact=self._exact, notify=self._notify)
        ]  # fmt: skip

    def _write_stages(
        self, decided: Mapping[int, Sequence[Body]], pending: Sequence[tuple[int, int]]
    ) -> None:
        for seed, index in pending:
            stages.write_stage(self.root, self.run, seed, index, decided[seed][index])
        self._on_disk = {seed: stages.settled(bodies) for seed, bodies in decided.items()}

    def _write_model(self, seed: int, stage: int, arrays: Mapping[str, np.ndarray]) -> None:
        place = f"{stages.seed_name(seed)}/{stages.model_name(stage)}"
        files.make_folder(self.root / stages.seed_name(seed))
        path = self.root / f"{place}.safetensors"
        records.write_tensors(path, arrays, None, place=place, run=self.run)

    def _forget_undone(self, found: Checkpoint | None) -> None:
        """Where recomputing differs in bits, stages later than the checkpoint cannot stand:
        they would be spliced onto another trajectory."""
        for seed in self.seeds:
            folder = self.root / stages.seed_name(seed)
            done = len(found.stages.get(seed, ())) if found else 0
            for index in reversed(stages.numbered(folder, stages.STAGE)):
                if index >= done:
                    self._notify(f"{folder / stages.stage_name(index)}.json lost its checkpoint "
                                 "and will be decided again")  # fmt: skip
                    files.remove(folder / f"{stages.stage_name(index)}.json")


def parse(path: Path, arrays: Mapping[str, np.ndarray], body: Any) -> Checkpoint:
    """A checkpoint from its parts, types checked."""
    if not isinstance(body, dict) or set(body) != {"state", "stages"}:
        raise records.damaged(path, "it is not a unit's checkpoint")
    state, decided = body["state"], body["stages"]
    whole = (
        isinstance(state, dict)
        and isinstance(decided, dict)
        and all(re.fullmatch(r"0|[1-9][0-9]{0,8}", seed) for seed in decided)
        and all(isinstance(of, list) for of in decided.values())
        and all(isinstance(stage, dict) for of in decided.values() for stage in of)
    )
    if not whole:
        raise records.damaged(path, "it is not a unit's checkpoint")
    return Checkpoint(arrays, state, {int(seed): of for seed, of in decided.items()})
