"""Names in a run's folder, and the decided stages: one immutable record each."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import algocapture.store.files as files
import algocapture.store.records as records
from algocapture.store.contents import wrong_stage
from algocapture.store.files import MissingError, StoreError

CONFIG, RESULT, META = "config", "result", "meta"
# One spelling per number: `seed-0000`, and `seed-12345` but not `seed-00001`.
SEED = re.compile(r"seed-(\d{4}|[1-9]\d{4,8})", re.ASCII)
UNIT = re.compile(r"unit-(\d{3}|[1-9]\d{3,8})", re.ASCII)
STAGE = re.compile(r"stage-(\d{3}|[1-9]\d{3,8})\.json", re.ASCII)
MODEL = re.compile(r"model-(\d{3}|[1-9]\d{3,8})\.safetensors", re.ASCII)
CHECKPOINT = re.compile(r"checkpoint-(\d{8})\.safetensors", re.ASCII)
NOTE = re.compile(r"[a-z0-9][a-z0-9-]{0,63}\.json")

Body = dict[str, Any]
Notify = Callable[[str], None]


def seed_name(seed: int) -> str:
    return f"seed-{_index('seed', seed):04d}"


def unit_name(unit: int) -> str:
    return f"unit-{_index('unit', unit):03d}"


def stage_name(stage: int) -> str:
    return f"stage-{_index('stage', stage):03d}"


def model_name(stage: int) -> str:
    return f"model-{_index('stage', stage):03d}"


def _index(what: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise StoreError(f"{what} must be an integer >= 0, got {value!r}")
    return value


def numbered(folder: Path, pattern: re.Pattern[str]) -> list[int]:
    """The numbers of the files or folders with such a name, in order."""
    matches = map(pattern.fullmatch, files.names(folder))
    return sorted(int(match[1]) for match in matches if match)


def read_stages(root: Path, run: str, seed: int) -> list[Body]:
    """The decided stages of a seed, from the first on without a gap."""
    folder = root / seed_name(seed)
    indices = numbered(folder, STAGE)
    for expected, index in enumerate(indices):
        if index != expected:
            raise StoreError(
                f"{folder / stage_name(expected)}.json is missing though later stages exist: "
                "restore it from a copy, or resume the run to write it again"
            )
    return [read_stage(root, run, seed, index) for index in indices]


def read_stage(root: Path, run: str, seed: int, index: int) -> Body:
    place = f"{seed_name(seed)}/{stage_name(index)}"
    path = root / f"{place}.json"
    body = records.read_record(path, place=place, run=run)
    if not isinstance(body, dict):
        raise records.damaged(path, "a stage is a JSON object")
    if body.get("index", index) != index:
        raise records.damaged(path, f"it says that it is stage {body['index']!r}")
    if wrong := wrong_stage(body):
        raise records.damaged(path, f"{wrong} is of no use")
    return body


def settled(bodies: Sequence[Body]) -> int:
    """How many stages never change: all but a last one that a limit ended (`"outcome":
    "censored"`), which a run extended by a larger limit continues."""
    return len(bodies) - bool(bodies and bodies[-1].get("outcome") == "censored")


def must_write(
    root: Path, run: str, seed: int, index: int, body: Body, *, exact: bool, notify: Notify
) -> bool:
    """Is this stage still to be written? The same on disk: no; damaged or censored: yes;
    another outcome: refused; that a limit ended it never replaces an outcome.

    With `exact=False` (a device that is not bit-reproducible) another one is to be replaced.
    """
    place = f"{seed_name(seed)}/{stage_name(index)}"
    path = root / f"{place}.json"
    try:
        if files.read(path) == records.encode_record(body, place=place, run=run):
            return False
        old = read_stage(root, run, seed, index)
    except MissingError:
        return True
    except StoreError as error:
        notify(f"{error}; it is written again")
        return True
    if not settled([old]):
        return True
    if not settled([body]):
        return False  # seen again from an older checkpoint, or under smaller limits
    if exact:
        raise StoreError(
            f"{path} holds another outcome than this stage has now: decided stages never "
            "change; the code, the libraries or the thread count differ from when it was "
            "written. Use a new folder, or the environment recorded in meta.json"
        )
    notify(f"{path} was decided again on a device that is not bit-reproducible: replaced")
    return True


def write_stage(root: Path, run: str, seed: int, index: int, body: Body) -> None:
    place = f"{seed_name(seed)}/{stage_name(index)}"
    files.make_folder(root / seed_name(seed))
    records.write_record(root / f"{place}.json", body, place=place, run=run)
