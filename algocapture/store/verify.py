"""Check all hashes of a run's folder and rebuild its result. Reads only, needs no lock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import algocapture.store.files as files
import algocapture.store.records as records
import algocapture.store.stages as stages
from algocapture.store.files import StoreError
from algocapture.store.run import NOTES, PARTS, RunFolder
from algocapture.store.unit import parse

_LOCK = re.compile(r"\.lock-\d{6,12}", re.ASCII)
_TOP = re.compile(r"(config|result|meta)\.json")
_DRAWN = (
    "report.html",
    "figures",
    "tables",
    "summary.md",
)  # made from the run at any time: not hashed
_FOLDERS = {
    stages.SEED: (stages.STAGE, stages.MODEL),
    stages.UNIT: (stages.CHECKPOINT, _LOCK),
    re.compile(NOTES): (stages.NOTE,),
    re.compile(PARTS): (stages.NOTE,),
}


@dataclass(frozen=True)
class Problem:
    """One damaged, missing or foreign file."""

    path: str  # in the run's folder
    message: str


@dataclass(frozen=True)
class Verified:
    """What `verify` found. `files` were read and are whole."""

    files: int
    stages: int
    problems: tuple[Problem, ...]
    result: str  # "matches" | "absent" | "older than the stages" | "damaged" | "differs"
    # | "not compared", for want of readable stages

    @property
    def ok(self) -> bool:
        return not self.problems


def verify(path: Path | str) -> Verified:
    """Read every file of a run; a folder that is no run at all raises a StoreError."""
    run = RunFolder(path)
    problems: list[Problem] = []
    whole = 0
    for place in _all(run.path, problems):
        try:
            _check(run, place)
            whole += 1
        except StoreError as error:
            problems.append(Problem(place, str(error)))
    decided = {}
    for seed in run.seeds():
        try:
            decided[seed] = run.stages(seed)
        except StoreError as error:
            if str(error) not in {problem.message for problem in problems}:
                problems.append(Problem(stages.seed_name(seed), str(error)))
    state = _compare(run, decided)
    if state == "differs":
        problems.append(Problem("result.json", "result.json is not what the stages give"))
    return Verified(whole, sum(map(len, decided.values())), tuple(problems), state)


def _all(root: Path, problems: list[Problem]) -> Iterator[str]:
    """Every file of a known name; anything else is reported as foreign."""
    for name in files.names(root):
        if name in _DRAWN:
            continue
        inside = [known for pattern, known in _FOLDERS.items() if pattern.fullmatch(name)]
        folder = root / name
        if inside and folder.is_dir() and not folder.is_symlink():
            leaves = {leaf: _known(leaf, inside[0]) for leaf in files.names(folder)}
            problems.extend(_foreign(f"{name}/{leaf}") for leaf in leaves if not leaves[leaf])
            yield from (f"{name}/{leaf}" for leaf in leaves if leaves[leaf])
        elif _known(name, (_TOP, _LOCK)):
            yield name
        else:
            problems.append(_foreign(name))


def _known(name: str, patterns: Iterable[re.Pattern[str]]) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns)


def _foreign(place: str) -> Problem:
    return Problem(place, f"{place} is not a file of a run: move it elsewhere")


def _check(run: RunFolder, name: str) -> None:
    path, place = run.path / name, name.rpartition(".")[0]
    data = files.read(path, files.MOST if name.endswith(".json") else files.memory())
    if _LOCK.fullmatch(path.name):
        return  # not evidence: a damaged lock is taken over by the next process
    if name.endswith(".json"):
        envelope = records.decode_record(data, path)
    else:
        arrays, envelope = records.decode_tensors(data, path)
        if stages.CHECKPOINT.fullmatch(path.name):
            parse(path, arrays, envelope["body"])
    records.check_place(envelope, path, place=place, run=run.digest)


def _compare(run: RunFolder, decided: dict[int, list[dict[str, Any]]]) -> str:
    try:
        result = run.read_result()
    except StoreError:
        return "damaged"
    if result is None:
        return "absent"
    if len(decided) < len(run.seeds()):
        return "not compared"
    try:
        now = run.result_of(decided)
    except StoreError:  # a damaged part
        return "not compared"
    if result == now:
        return "matches"
    try:
        older = result["identity"] == run.identity and all(
            _begins(decided[curve["seed"]], curve["stages"]) for curve in result["seeds"]
        )
        parts = now.get("parts", {})
        older = older and all(parts.get(n) == of for n, of in result.get("parts", {}).items())
    except (KeyError, TypeError, AttributeError):
        return "differs"
    return "older than the stages" if older else "differs"


def _begins(now: list[stages.Body], then: list[stages.Body]) -> bool:
    """Does a curve go on from an older one, whose censored end a larger budget may continue?"""
    kept = then[: stages.settled(then)]
    return len(now) >= len(then) and now[: len(kept)] == kept
