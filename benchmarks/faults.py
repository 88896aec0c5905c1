"""A campaign of faults: runs are killed, starved, damaged and raced, and nothing may be lost.

Every fault hits a run of about a second in a forked child; then the same command is given again,
and again, until it ends. The audit reads the folder with json and hashlib alone, never with the
store, and counts three things against the run that nothing befell:

    lost      a decided stage that vanished or changed, or is not in the final result
    twice     a stage or a training sample that the final result counts twice
    by hand   a folder that the same command could not bring to its end

    python -m benchmarks.faults --out faults.json               # about 900 faults, local
    python -m benchmarks.faults --out faults.json --seconds 200 # a part; the same again continues
    python -m benchmarks.faults --only "power" --scale 0.1      # a part of it, a tenth
    python -m benchmarks.faults --break ledger --scale 0.05     # a broken store: must be counted
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from algocapture.experiment import unit as units
from benchmarks import faults_kinds
from benchmarks.faults_broken import BROKEN
from tests.crash import Work, in_child
from tests.victim import real

Place = tuple[int, int]  # seed, stage
PORTION = 30  # faults of a kind before what was counted is written down


@dataclass
class Row:
    """What one kind of fault did."""

    injected: int = 0
    runs: int = 0  # folders that were brought to their end
    lost: int = 0
    twice: int = 0
    by_hand: int = 0
    details: list[str] = field(default_factory=list)


def stages_of(folder: Path) -> dict[Place, Any]:
    """The bodies of the stage files; None for what is no JSON."""
    found: dict[Place, Any] = {}
    for path in folder.glob("seed-*/stage-*.json"):
        place = (int(path.parent.name[5:]), int(path.stem[6:]))
        try:
            found[place] = json.loads(path.read_bytes())["body"]
        except (ValueError, KeyError, TypeError):
            found[place] = None
    return found


def result_of(folder: Path) -> Any:
    """The body of result.json, or None."""
    try:
        return json.loads((folder / "result.json").read_bytes())["body"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def charged_twice(result: Any, expected: Any) -> list[str]:
    """Seeds, stages and samples that a result holds more often than they were spent."""
    seeds = [curve["seed"] for curve in result["seeds"]]
    found = [f"seed {seed} is there twice" for seed in {s for s in seeds if seeds.count(s) > 1}]
    for curve, right in zip(result["seeds"], expected["seeds"], strict=False):
        if len(curve["stages"]) > len(right["stages"]):
            found.append(f"a stage of seed {curve['seed']} is there twice")
        for index, (stage, should) in enumerate(
            zip(curve["stages"], right["stages"], strict=False)
        ):
            paid = _paid(stage)
            if paid != stage["spent"] or paid > should["spent"]:
                found.append(f"seed {curve['seed']}, stage {index}: {paid} samples paid, "
                             f"{should['spent']} spent by the run that nothing befell")  # fmt: skip
    return found


def _paid(stage: Any) -> int:
    """Training samples that the ledger has charged so far."""
    rows = stage.get("ledger")
    if rows is None:
        return int(stage["spent"])
    return sum(row["samples"] for row in rows if row["account"] == "train")


class Trial:
    """One folder after another is hit, audited all along and brought to its end."""

    def __init__(self, work: Work, root: Path, row: Row, reference: Path) -> None:
        self.work, self.root, self.row = work, root, row
        self.bytes = (reference / "result.json").read_bytes()
        self.expected, self.stages = result_of(reference), stages_of(reference)
        self.number = row.runs  # every other one differs on a cluster
        self.fresh()

    def fresh(self) -> None:
        shutil.rmtree(self.root / f"run-{self.number:04d}", ignore_errors=True)
        self.number += 1
        self.folder = self.root / f"run-{self.number:04d}"
        self.seen: set[Place] = set()

    def hit(self, act: Callable[[Path], bool], audit: bool = True) -> None:
        """Inject one fault; `act` says whether it took place, or the run ended before."""
        took_place = act(self.folder)
        self.row.injected += took_place
        if audit:
            self.audit()
        if not took_place:
            self.finish()

    def audit(self) -> None:
        found = stages_of(self.folder)
        for place in sorted(self.seen | set(found)):
            if found.get(place) != self.stages.get(place):
                self._lost(place, "vanished or changed")
        self.seen = set(found)

    def finish(self) -> None:
        """The same command to its end, then the result against the undisturbed run's."""
        code = self.again()
        if code != 0:
            self.row.by_hand += 1
            self.row.details.append(f"{self.folder.name}: the same command ends with {code}")
            self.fresh()
            return
        self.audit()
        self.compare()
        self.row.runs += 1
        self.fresh()

    def again(self) -> int:
        """The same command, undisturbed; its exit code."""
        return in_child(self.work, self.folder)

    def compare(self) -> None:
        if (self.folder / "result.json").read_bytes() == self.bytes:
            return
        result = result_of(self.folder) or {"seeds": []}
        held = {(c["seed"], i): s for c in result["seeds"] for i, s in enumerate(c["stages"])}
        for place in self.stages:
            if held.get(place) != self.stages[place]:
                self._lost(place, "is not in the result as it was decided")
        twice = charged_twice(result, self.expected)
        self.row.twice += len(twice)
        self.row.details += [f"{self.folder.name}: {line}" for line in twice]

    def _lost(self, place: Place, how: str) -> None:
        self.row.lost += 1
        self.row.details.append(f"{self.folder.name}: seed {place[0]}, stage {place[1]} {how}")


@contextmanager
def memory() -> Iterator[Path]:
    """Memory instead of a disk: a kill leaves the same there, and an fsync costs nothing."""
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        yield Path(folder)


def campaign(
    only: str = "",
    scale: float = 1.0,
    seed: int = 0,
    keep: Callable[[dict[str, Row]], None] = lambda rows: None,
    work: Work = real,
    broken: str | None = None,
    rows: dict[str, Row] | None = None,
    seconds: float = float("inf"),
) -> dict[str, Row]:
    """Every kind of fault in turn: name -> what it did. `broken`: to a store that is; `rows`: what
    was done before. After so many seconds no portion begins."""
    rows = {} if rows is None else rows
    end = time.monotonic() + seconds
    with memory() as root, patch.object(units, "CHECKPOINT_SECONDS", 0.0):  # after each step
        work(root / "warm")  # what is compiled lazily is there before forking
        reference, begun = root / "undisturbed", time.perf_counter()
        assert in_child(work, reference) == 0
        takes = time.perf_counter() - begun
        for name in (name for name in faults_kinds.KINDS if only in name):
            number, kind = faults_kinds.KINDS[name]
            row, whole = rows.setdefault(name, Row()), max(1, round(scale * number))
            trial = Trial(work, root, row, reference)
            while row.injected < whole and time.monotonic() < end:
                generator = np.random.default_rng([seed, row.injected, *name.encode()])
                portion = min(whole, row.injected + PORTION)
                _injected(partial(kind, trial, portion, generator, takes), broken)
                keep(rows)
    return rows


def _injected(portion: Callable[[], None], broken: str | None) -> None:
    with BROKEN[broken]() if broken else nullcontext():
        portion()


def held(out: Path | None) -> dict[str, Row]:
    """What earlier parts of a campaign did."""
    if out is None or not out.exists():
        return {}
    return {name: Row(**row) for name, row in json.loads(out.read_bytes())["kinds"].items()}


def hold(out: Path | None, seed: int, rows: dict[str, Row]) -> None:
    if out is not None:
        body = {"seed": seed, "kinds": {name: asdict(row) for name, row in rows.items()}}
        out.write_text(json.dumps(body, indent=1) + "\n")


def table(rows: dict[str, Row]) -> str:
    """As in the page on the results."""
    lines = ["| fault | injected | runs ended | lost | counted twice | repaired by hand |",
             "|---|---:|---:|---:|---:|---:|"]  # fmt: skip
    total = [sum(getattr(r, f) for r in rows.values())
             for f in ("injected", "runs", "lost", "twice", "by_hand")]  # fmt: skip
    for name, r in rows.items():
        lines.append(f"| {name} | {r.injected} | {r.runs} | {r.lost} | {r.twice} | {r.by_hand} |")
    return "\n".join([*lines, "| **all** | " + " | ".join(map(str, total)) + " |"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="", help="kinds with this in their name")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--break", dest="broken", choices=BROKEN)
    given = parser.parse_args()

    def keep(rows: dict[str, Row]) -> None:
        for name, row in rows.items():
            print(f"{time.strftime('%H:%M:%S')} {name}: {asdict(row)}", flush=True)
        hold(given.out, given.seed, rows)

    print(table(campaign(given.only, given.scale, given.seed, keep, broken=given.broken,
                         rows=held(given.out), seconds=given.seconds)))  # fmt: skip


if __name__ == "__main__":
    main()
