"""The campaign on a Ray cluster of two nodes on loopback: workers, nodes, driver, head are killed.

    python -m benchmarks.faults_ray --number 100 --out faults_ray.json

A driver runs in a process of its own. At random instants something is killed; when the driver has
ended, in whatever way, the same command is given again, to a new cluster if the head was killed,
until a run is complete. It is audited as the local campaign's (`benchmarks/faults.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from algocapture.experiment import drive
from algocapture.launch import Inline
from benchmarks.faults import Row, Trial, memory, table
from benchmarks.faults_kinds import descendants
from tests.victim import EXPERIMENT

VICTIM = replace(EXPERIMENT, seeds=4)
PATIENCE = 120.0  # seconds for a driver whose cluster is gone; then a person would end it


@dataclass
class Nodes:
    """A head and a second node of one core each, replaced when they are killed."""

    cluster: Any = None
    second: Any = None

    def start(self) -> None:
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 1, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.second = self.cluster.add_node(num_cpus=1)
        self.cluster.wait_for_nodes()

    def stop(self) -> None:
        with contextlib.suppress(Exception):  # parts of it are dead already
            self.cluster.shutdown()

    def mend(self) -> None:
        """What an autoscaler or an operator does: a node for a node, a cluster for a head."""
        if not self._alive(self.cluster.head_node):
            self.stop()
            self.start()
        elif not self._alive(self.second):
            with contextlib.suppress(Exception):
                self.cluster.remove_node(self.second, allow_graceful=False)
            self.second = self.cluster.add_node(num_cpus=1)

    @staticmethod
    def _alive(node: Any) -> bool:
        return not node.dead_processes()

    def kill(self, node: Any) -> bool:
        """All processes of a node at once, as when its power is cut."""
        doomed = [p.process.pid for held in node.all_processes.values() for p in held]
        for process in [*doomed, *(child for pid in doomed for child in descendants(pid))]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        return bool(doomed)

    def workers(self) -> list[int]:
        """The processes that run units: Ray's workers and our own below them."""
        ours = [pid for pid in descendants(os.getpid()) if b"algocapture" in _command(pid)]
        return ours + [p for p in descendants(os.getpid()) if b"ray::_work" in _command(p)]


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


@dataclass
class Driver:
    """One giving of the command."""

    process: subprocess.Popen[bytes]
    begun: float = field(default_factory=time.monotonic)

    @classmethod
    def start(cls, folder: Path, address: str) -> Driver:
        command = [sys.executable, "-m", "benchmarks.faults_ray", "--drive", str(folder), address]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return cls(subprocess.Popen(command, **quiet))

    def ends(self, seconds: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.process.poll() is not None

    def end(self) -> int:
        """The exit code; a driver that hangs is killed."""
        if not self.ends(PATIENCE):
            self.process.kill()
        return self.process.wait()


class RayTrial(Trial):
    def __init__(self, root: Path, row: Row, reference: Path, nodes: Nodes) -> None:
        super().__init__(lambda folder: None, root, row, reference)
        self.nodes = nodes

    def again(self) -> int:
        self.nodes.mend()
        return Driver.start(self.folder, self.nodes.cluster.address).end()

    def attack(self, kill: Callable[[Nodes, Driver], bool], waits: Sequence[float]) -> None:
        """As many faults in one driver's life as it survives, at most one for each wait."""
        self.nodes.mend()
        driver = Driver.start(self.folder, self.nodes.cluster.address)
        end = time.monotonic() + PATIENCE
        while not self.nodes.workers() and not driver.ends(0.2) and time.monotonic() < end:
            pass
        for seconds in waits:
            if not driver.ends(seconds):
                self.row.injected += kill(self.nodes, driver)
        code = driver.end()
        self.audit()
        if code == 0:
            self.finish()


def worker(nodes: Nodes, driver: Driver) -> bool:
    for process in nodes.workers()[:1]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
            return True
    return False


def node(nodes: Nodes, driver: Driver) -> bool:
    killed = nodes.kill(nodes.second)
    nodes.mend()
    return killed


def head(nodes: Nodes, driver: Driver) -> bool:
    return nodes._alive(nodes.cluster.head_node) and nodes.kill(nodes.cluster.head_node)


def of_driver(nodes: Nodes, driver: Driver) -> bool:
    if driver.process.poll() is not None:
        return False
    driver.process.kill()
    return True


KINDS = {
    "Ray: worker killed": (0.4, worker),
    "Ray: node killed": (0.25, node),
    "Ray: driver killed": (0.2, of_driver),
    "Ray: head killed": (0.15, head),
}


@contextlib.contextmanager
def cluster() -> Iterator[Nodes]:
    nodes = Nodes()
    nodes.start()
    try:
        yield nodes
    finally:
        nodes.stop()


def campaign(
    number: int, only: str, seed: int, keep: Callable[[dict[str, Row]], None]
) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    draw = np.random.default_rng(seed)
    with memory() as root, cluster() as nodes:
        reference = root / "undisturbed"
        assert drive(VICTIM, reference, Inline())
        for name in (name for name in KINDS if only in name):
            share, kill = KINDS[name]
            row = rows[name] = Row()
            trial = RayTrial(root, row, reference, nodes)
            while row.injected < round(share * number):
                trial.attack(kill, draw.uniform(0, 4, size=6).tolist())
                keep(rows)
            trial.finish()
            keep(rows)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--only", default="", help="kinds with this in their name")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--drive", nargs=2, metavar=("FOLDER", "ADDRESS"), help="one driver")
    given = parser.parse_args()
    if given.drive is not None:
        from algocapture.launch.ray import Ray

        sys.exit(0 if drive(VICTIM, given.drive[0], Ray(address=given.drive[1])) else 3)

    def keep(rows: dict[str, Row]) -> None:
        name, row = list(rows.items())[-1]
        print(f"{time.strftime('%H:%M:%S')} {name}: {asdict(row)}", flush=True)
        if given.out is not None:
            body = {"seed": given.seed, "kinds": {name: asdict(row) for name, row in rows.items()}}
            given.out.write_text(json.dumps(body, indent=1) + "\n")

    print(table(campaign(given.number, given.only, given.seed, keep)))


if __name__ == "__main__":
    main()
