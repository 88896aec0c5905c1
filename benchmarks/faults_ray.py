"""The campaign on a Ray cluster of two nodes on loopback.

    python -m benchmarks.faults_ray --number 100 --out faults_ray.json
    python -m benchmarks.faults_ray --number 100 --out faults_ray.json --seconds 200   # a part

Workers, nodes, drivers and heads are killed, the disk is filled, checkpoints are damaged, drivers
compete, clocks jump: several faults in one driver's life, most of them just after a stage was
decided. When the driver has ended, in whatever way, the same command is given again, to a new
cluster if the head was killed, until a run is complete. It is audited as the local campaign's
(`benchmarks/faults.py`); a driver that hangs is one that was repaired by hand. Every other run has
a store instead of a shared folder (`--publish`), whose copy is compared too. With `--seconds` no
fault begins later; the same command continues with the kinds that FILE does not have in full.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from algocapture.experiment import drive
from algocapture.experiment.publishing import fetch
from algocapture.launch import Inline
from benchmarks.faults import Row, Trial, held, hold, table
from benchmarks.faults_kinds import DAY, damage, decided, kill, moment
from benchmarks.faults_nodes import CLOCK, VICTIM, Driver, Nodes

Generator = np.random.Generator
ROOM = 256 * 2**20  # bytes of the disk that is filled
MOST = 8  # faults in one driver's life


class RayTrial(Trial):
    """The drivers of one folder after another; several when they compete."""

    def __init__(self, root: Path, row: Row, reference: Path, nodes: Nodes) -> None:
        self.nodes = nodes
        self.drivers: list[Driver] = []
        super().__init__(lambda folder: None, root, row, reference)

    @property
    def store(self) -> Path | None:
        """The folder behind the URL of every other run."""
        return self.root / f"store-{self.number}" if self.number % 2 == 0 else None

    def fresh(self) -> None:
        if self.store is not None:
            shutil.rmtree(self.store, ignore_errors=True)
        super().fresh()

    def begin(self) -> None:
        url = None if self.store is None else f"file://{self.store}"
        self.drivers.append(Driver(self.folder, self.nodes.cluster.address, url))

    def end(self) -> int:
        """The best exit code of the drivers, once all have ended."""
        codes = [driver.end() for driver in self.drivers]
        self.drivers = []
        self.row.by_hand += codes.count(None)
        self.row.details += [f"{self.folder.name}: a driver hangs"] * codes.count(None)
        return min((abs(code) for code in codes if code is not None), default=1)

    def again(self) -> int:
        self.nodes.mend()
        self.begin()
        return self.end()

    def compare(self) -> None:
        super().compare()
        if self.store is not None:
            copy = self.root / "fetched"
            fetch(f"file://{self.store}", copy, print)
            if (copy / "result.json").read_bytes() != self.bytes:
                self._lost((-1, -1), "in the store's copy")
            shutil.rmtree(copy)

    def attack(self, fault: Fault, draw: Generator, most: int) -> None:
        """As many faults in a driver's life as it survives."""
        self.nodes.mend()
        self.begin()
        while most and self.wait(draw):
            took_place = fault(self, draw)
            self.row.injected += took_place
            most -= took_place
            self.audit()
            if took_place:
                say(f"{fault.__name__} after {len(self.seen)} stages")
        code = self.end()
        say(f"{self.folder.name} ended with {code}")
        self.audit()
        if code == 0:
            self.finish()

    def wait(self, draw: Generator) -> bool:
        return moment(self.marks, lambda: not all(d.ends(0) for d in self.drivers), draw, 0.4)

    def marks(self) -> set[str]:
        """What says that a unit came further."""
        found = decided(self.folder)
        if self.store is not None:
            found |= {str(path) for path in self.store.glob("unit-*/commit-*")}
        return found


def say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


Fault = Callable[[RayTrial, Generator], bool]  # did it take place?


def worker(trial: RayTrial, draw: Generator) -> bool:
    """A process that runs a unit, or Ray's above it."""
    workers = list(trial.nodes.workers())
    return bool(workers) and kill(int(draw.choice(workers)))


def node(trial: RayTrial, draw: Generator) -> bool:
    killed = trial.nodes.kill(trial.nodes.second)
    trial.nodes.mend()
    return killed


def head(trial: RayTrial, draw: Generator) -> bool:
    return trial.nodes.alive(trial.nodes.cluster.head_node) and trial.nodes.kill(
        trial.nodes.cluster.head_node
    )


def driver(trial: RayTrial, draw: Generator) -> bool:
    return kill(trial.drivers[-1].process.pid)


def another_driver(trial: RayTrial, draw: Generator) -> bool:
    """On the same folder; one time in two the first is killed when it enters."""
    first = trial.drivers[-1].process
    trial.begin()
    if draw.random() < 0.5:
        time.sleep(draw.uniform(0, 1))
        kill(first.pid)
    else:
        trial.drivers[-1].ends(20)
    return True


def full_disk(trial: RayTrial, draw: Generator) -> bool:
    """For some seconds nothing more can be written."""
    filler = trial.root / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(2**20)):
            pass
    time.sleep(draw.uniform(0.5, 4))
    filler.unlink()
    return True


def checkpoint(trial: RayTrial, draw: Generator) -> bool:
    """The newest of a unit, in its folder or in the store, while its worker is killed."""
    running = {unit: process for process, unit in trial.nodes.workers().items() if unit >= 0}
    found = newest(trial, draw)
    if not found:
        return False
    unit, path = found
    if not path.exists() or not path.stat().st_size:  # a former fault was its removal
        return False
    if unit in running:
        kill(running[unit])
    try:
        damage(path, draw)
    except FileNotFoundError:  # its worker has gone on and removed it
        return False
    return True


def newest(trial: RayTrial, draw: Generator) -> tuple[int, Path] | None:
    pattern = "unit-*/checkpoint-*" if trial.store is None else "unit-*/commit-*"
    paths = sorted((trial.store or trial.folder).glob(pattern))
    last = list({path.parent: path for path in paths}.values())
    if not last:
        return None
    path = last[int(draw.integers(len(last)))]
    unit = int(path.parent.name[5:])
    if trial.store is not None:
        body = json.loads(path.read_bytes())["body"]
        path = trial.store / "objects" / body["objects"][body["checkpoint"]]
    return unit, path


def clock(trial: RayTrial, draw: Generator) -> bool:
    """All files have dates of years before or after, and a worker is killed; the time of day
    jumps with each reading in every process of the second node (see `campaign`)."""
    for path in trial.folder.rglob("*"):
        at = time.time() + draw.uniform(-3650, 3650) * DAY
        with contextlib.suppress(FileNotFoundError):
            os.utime(path, (at, at))
    return worker(trial, draw)


KINDS: dict[str, tuple[float, Fault]] = {
    "Ray: worker killed": (0.3, worker),
    "Ray: node killed": (0.15, node),
    "Ray: driver killed": (0.15, driver),
    "Ray: head killed": (0.1, head),
    "Ray: another driver at once": (0.1, another_driver),
    "Ray: disk full for seconds": (0.08, full_disk),
    "Ray: newest checkpoint damaged": (0.07, checkpoint),
    "Ray: clock jumps, then killed": (0.05, clock),
}


@contextlib.contextmanager
def small_disk() -> Iterator[Path]:
    """A file system of its own in memory, which can be filled; without the right to mount one,
    all kinds but that can be had."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", folder]
        mounted = subprocess.run(["mount", *options], capture_output=True).returncode == 0
        try:
            yield Path(folder)
        finally:
            if mounted:
                subprocess.run(["umount", "--lazy", folder], check=True)


@contextlib.contextmanager
def cluster(path: str) -> Iterator[Nodes]:
    nodes = Nodes(path)
    nodes.start()
    try:
        yield nodes
    finally:
        nodes.stop()


def campaign(
    number: int,
    only: str,
    seed: int,
    keep: Callable[[dict[str, Row]], None],
    rows: dict[str, Row] | None = None,
    seconds: float = float("inf"),
) -> dict[str, Row]:
    """Until each kind has its number; `rows`: what was done before."""
    rows = {} if rows is None else rows
    end = time.monotonic() + seconds
    with small_disk() as root:
        reference = root / "undisturbed"
        assert drive(VICTIM, reference, Inline())
        (root / "sitecustomize.py").write_text(CLOCK)
        for name in (name for name in KINDS if only in name):
            share, fault = KINDS[name]
            row, whole = rows.setdefault(name, Row()), max(1, round(share * number))
            if row.injected >= whole or time.monotonic() > end:
                continue
            if fault is full_disk and not root.is_mount():
                raise SystemExit("to fill a disk takes the right to mount one: begin as root")
            draw = np.random.default_rng([seed, row.injected, *name.encode()])
            with cluster(str(root) if fault is clock else "") as nodes:
                say(name)
                trial = RayTrial(root, row, reference, nodes)
                _inject(trial, fault, draw, whole, end)
                say(f"{row}")
            keep(rows)
    return rows


def _inject(trial: RayTrial, fault: Fault, draw: Generator, whole: int, end: float) -> None:
    while trial.row.injected < whole and time.monotonic() < end:
        trial.attack(fault, draw, min(MOST, whole - trial.row.injected))
    trial.finish()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--only", default="", help="kinds with this in their name")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    given = parser.parse_args()
    rows = {}
    say("begun")
    rows = held(given.out)

    def keep(rows: dict[str, Row]) -> None:
        hold(given.out, given.seed, rows)

    print(table(campaign(given.number, given.only, given.seed, keep, rows, given.seconds)))


if __name__ == "__main__":
    main()
