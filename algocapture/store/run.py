"""A run's folder: what is run, what was decided, what can be continued.

    config.json                          identity and extension, both as JSON
    seed-0000/stage-000.json ...         the decided stages, immutable
    seed-0000/model-003.safetensors      weights after a stage, for load_model (if committed)
    unit-000/checkpoint-00000007...      what unit 0 needs to continue: the last two
    parts/NAME.json                      the measured parts of a study, immutable
    notes/NAME.json                      anything else, replaced as a whole
    result.json                          identity and all stages: comparable between hosts
    meta.json                            versions, device, times

The driver holds the folder, each worker its unit:

    with RunFolder.enter(path, identity={"task": ...}, extension={"seeds": 5}) as run:
        ...                                            # start one worker per unit; then
        run.write_result()

    run = RunFolder(path)                              # in a worker, or to read
    with run.unit(3, seeds=[3]) as unit:
        saved = unit.restore()                         # None: start afresh
        ...
        unit.commit(Checkpoint(arrays, state={"step": 10}, stages={3: [{"size": 8}]}),
                    models={3: weights})
    run.stages(3)                                      # [{"size": 8}]
    run.load_model(3, 0)
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import algocapture.store.files as files
import algocapture.store.records as records
import algocapture.store.stages as stages
from algocapture.config import difference, digest
from algocapture.store.contents import wrong_config
from algocapture.store.files import MissingError, StoreError
from algocapture.store.lock import Lock, holder_of
from algocapture.store.stages import CONFIG, META, RESULT, Body, Notify
from algocapture.store.unit import UnitFolder

NOTES, PARTS = "notes", "parts"


def _warn(message: str) -> None:
    logging.getLogger("algocapture.store").warning("%s", message)


class RunFolder:
    """An existing run. Reading needs no lock; `enter` and `resume` hold the folder to write."""

    def __init__(self, path: Path | str, notify: Notify = _warn) -> None:
        self.path = Path(path)
        self.notify = notify
        try:
            data = files.read(self._json(CONFIG))
        except MissingError as error:
            raise StoreError(f"{self.path} is not a run: it holds no config.json") from error
        self.digest, body = decode_config(data, self._json(CONFIG))
        self.identity: Body = body["identity"]
        self.extension: Body = body["extension"]
        self.recipe: str | None = body["recipe"]

    @classmethod
    @contextmanager
    def enter(
        cls,
        path: Path | str,
        identity: Body,
        extension: Body,
        *,
        recipe: str | None = None,
        notify: Notify = _warn,
    ) -> Iterator[RunFolder]:
        """Create the run, or extend the one that is there if its identity is the same.

        `recipe` is the digest of a user's recipe file; if both are known they must agree.
        """
        path = Path(path)
        _refuse_foreign(path)
        files.make_folder(path)
        with Lock(path, notify=notify):
            files.clean(path)
            body = {"identity": identity, "extension": extension, "recipe": recipe}
            if CONFIG + ".json" in files.names(path):
                held = cls(path, notify)
                held.require(identity, recipe)
                body["recipe"] = recipe or held.recipe
            new = records.encode_record(body, place=CONFIG, run=digest(identity))
            config = path / f"{CONFIG}.json"
            if not config.exists() or files.read(config) != new:
                files.write_atomic(config, new)
            yield cls(path, notify)

    @classmethod
    @contextmanager
    def resume(cls, path: Path | str, notify: Notify = _warn) -> Iterator[RunFolder]:
        """Hold an existing run as it is."""
        cls(path, notify)  # a folder that is no run is refused before a lock is left in it
        with Lock(Path(path), notify=notify):
            files.clean(Path(path))
            yield cls(path, notify)

    def unit(
        self, index: int, seeds: Sequence[int], *, exact: bool = True, wait: float = 0.0
    ) -> UnitFolder:
        """The folder of one unit of work. `exact`: recomputing a stage gives the same bits.
        `wait`: seconds to wait for a former worker of this unit that is still ending."""
        return UnitFolder(
            self.path, self.digest, index, seeds, exact=exact, wait=wait, notify=self.notify
        )

    def has_unit(self, unit: int) -> bool:
        """Was anything of this unit kept here?"""
        return (self.path / stages.unit_name(unit)).is_dir()

    def workers(self) -> dict[int, str]:
        """The units that are being worked on, and by whom, without waiting to be sure."""
        units = stages.numbered(self.path, stages.UNIT)
        held = {unit: holder_of(self.path / stages.unit_name(unit)) for unit in units}
        return {unit: who for unit, who in held.items() if who is not None}

    def seeds(self) -> list[int]:
        """The seeds that have a folder."""
        return stages.numbered(self.path, stages.SEED)

    def stages(self, seed: int) -> list[Body]:
        """The decided stages of a seed in order, hashes checked; [] if there are none yet."""
        return stages.read_stages(self.path, self.digest, seed)

    def append_stage(self, seed: int, index: int, body: Body) -> None:
        """Record a stage without a checkpoint; the same again does nothing, another is refused."""
        if index > len(stages.numbered(self.path / stages.seed_name(seed), stages.STAGE)):
            raise StoreError(f"seed {seed}: stage {index} would leave a gap")
        place = (self.path, self.digest, seed, index, body)
        if stages.must_write(*place, exact=True, notify=self.notify):
            stages.write_stage(*place)

    def models(self, seed: int) -> list[int]:
        """The stages of a seed after which weights were kept."""
        return stages.numbered(self.path / stages.seed_name(seed), stages.MODEL)

    def load_model(self, seed: int, stage: int) -> dict[str, np.ndarray]:
        """The weights of a seed as they were when a stage was decided."""
        place = f"{stages.seed_name(seed)}/{stages.model_name(stage)}"
        path = self.path / f"{place}.safetensors"
        if stage not in self.models(seed):
            kept = ", ".join(map(str, self.models(seed))) or "none"
            raise StoreError(f"no weights of seed {seed} after stage {stage}; kept: {kept}")
        return records.read_tensors(path, place=place, run=self.digest)[0]

    def result(self) -> Body:
        """What result.json holds, rebuilt from the stages: a function of nothing else."""
        return self.result_of({seed: self.stages(seed) for seed in self.seeds()})

    def result_of(self, stages: Mapping[int, Sequence[Body]]) -> Body:
        """What result.json holds when these are the stages by seed."""
        curves = [{"seed": seed, "stages": list(of)} for seed, of in stages.items()]
        parts = {name: self.part(name) for name in self.parts()}
        return {"identity": self.identity, "seeds": curves} | ({"parts": parts} if parts else {})

    def write_result(self) -> Body:
        """Write result.json, the last act of a run."""
        body = self.result()
        records.write_record(self._json(RESULT), body, place=RESULT, run=self.digest)
        return body

    def read_result(self) -> Body | None:
        """result.json as it was written, or None while there is none."""
        return self._optional(RESULT)

    def write_meta(self, body: Body) -> None:
        """Host facts and times: nothing that decides anything."""
        records.write_record(self._json(META), body, place=META, run=self.digest)

    def read_meta(self) -> Body:
        """{} if there is none; damaged facts about hosts must not keep a run from going on."""
        try:
            return self._optional(META) or {}
        except StoreError as error:
            self.notify(str(error))
            return {}

    def write_note(self, name: str, body: Any) -> None:
        """Anything else worth keeping, such as an evaluation on demand: notes/NAME.json."""
        place = _named(name, NOTES)
        files.refuse_link(self.path / NOTES)
        files.make_folder(self.path / NOTES)
        records.write_record(self._json(place), body, place=place, run=self.digest)

    def read_note(self, name: str) -> Any:
        """None if there is no such note."""
        return self._optional(_named(name, NOTES))

    def notes(self) -> list[str]:
        found = files.names(self.path / NOTES)
        return [name.removesuffix(".json") for name in found if stages.NOTE.fullmatch(name)]

    @property
    def is_study(self) -> bool:
        """A study has parts, another run has seeds."""
        return "parts" in self.extension

    def write_part(self, name: str, rows: list[Body]) -> None:
        """Record a measured part of a study; one that is there and whole is never replaced."""
        place = _named(name, PARTS)
        try:
            self._optional(place)
        except StoreError as error:
            self.notify(f"{error}; it is written again")
        else:
            if name in self.parts():
                return
        files.refuse_link(self.path / PARTS)
        files.make_folder(self.path / PARTS)
        records.write_record(self._json(place), rows, place=place, run=self.digest)

    def part(self, name: str) -> list[Body]:
        """The rows of a measured part, hash checked."""
        place = _named(name, PARTS)
        rows: list[Body] = records.read_record(self._json(place), place=place, run=self.digest)
        return rows

    def parts(self) -> list[str]:
        """The measured parts by name."""
        found = files.names(self.path / PARTS)
        return [name.removesuffix(".json") for name in found if stages.NOTE.fullmatch(name)]

    def _optional(self, place: str) -> Any:
        try:
            return records.read_record(self._json(place), place=place, run=self.digest)
        except MissingError:
            return None

    def _json(self, place: str) -> Path:
        return self.path / f"{place}.json"

    def require(self, identity: Body, recipe: str | None) -> None:
        """Refuse what is not this run: another identity, or a changed recipe file."""
        if digest(identity) != self.digest:
            lines = "\n  ".join(difference(self.identity, identity))
            raise StoreError(
                f"{self.path} holds another run; use a new folder, or undo the difference:\n"
                f"  {lines}"
            )
        if recipe and self.recipe and recipe != self.recipe:
            raise StoreError(
                f"the recipe file changed since {self.path} was begun (digest {self.recipe[:12]}, "
                f"now {recipe[:12]}): use that version of the file, or a new folder"
            )


def decode_config(data: bytes, path: Path) -> tuple[str, Body]:
    """The digest of a run and its configuration, from the bytes of config.json."""
    envelope = records.decode_record(data, path)
    body: Body = envelope["body"]
    if not _is_config(body) or envelope["run"] != digest(body["identity"]):
        raise records.damaged(path, "it is not a run's configuration")
    if wrong := wrong_config(body):
        raise records.damaged(path, f"{wrong} is of no use")
    records.check_place(envelope, path, place=CONFIG, run=envelope["run"])
    return str(envelope["run"]), body


def _is_config(body: Any) -> bool:
    return (
        isinstance(body, Mapping)
        and set(body) == {"identity", "extension", "recipe"}
        and isinstance(body["identity"], dict)
        and isinstance(body["extension"], dict)
        and isinstance(body["recipe"], str | None)
    )


def _refuse_foreign(path: Path) -> None:
    """A run is begun in a new or empty folder only; what a killed beginner left is empty too."""
    found = [name for name in files.names(path) if not name.startswith(".lock-")]
    if found and CONFIG + ".json" not in found:
        raise StoreError(
            f"{path} is not a run and not empty (it holds {found[0]!r}): use a new folder"
        )


def _named(name: str, folder: str) -> str:
    if not stages.NOTE.fullmatch(f"{name}.json"):
        raise StoreError(
            f"a {folder[:-1]}'s name is letters a-z, digits and '-', 64 at most, got {name!r}"
        )
    return f"{folder}/{name}"
