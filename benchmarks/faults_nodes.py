"""What the campaign on a cluster kills: two Ray nodes on loopback, and drivers that use them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from algocapture.experiment import drive
from algocapture.learners import SGD
from algocapture.models import Transformer
from algocapture.protocol import Limits
from benchmarks.faults_kinds import descendants, kill
from tests.victim import EXPERIMENT

# Four units of two seconds after a start of four: 23 stages each, so that kills hit work.
VICTIM = replace(
    EXPERIMENT,
    seeds=4,
    learner=SGD(model=Transformer(depth=1, width=64, heads=1), lr=5e-3, warmup=5),
    protocol=replace(EXPERIMENT.protocol, growth=1.1, probe_samples=256),
    limits=Limits(largest=40, samples=50_000),
)
os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", "5")  # 60 s: nothing new, slower
HANGS = 150.0  # seconds; a driver that has not ended by itself then would need a person

# A driver is forked from a process that has imported everything: a start takes no seconds.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["algocapture.launch.ray", __name__])

CLOCK = """
import random, time
true, jumps = time.time, random.Random()
time.time = lambda: true() + jumps.uniform(-3650, 3650) * 86_400
"""


@dataclass
class Nodes:
    """A head and a second node of one core each, replaced when they are killed.

    `path` is put before PYTHONPATH of the second node.
    """

    path: str = ""
    cluster: Any = None
    second: Any = None

    def start(self) -> None:
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 1, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self._join()

    def _join(self) -> None:
        former = os.environ.get("PYTHONPATH", "")
        os.environ["PYTHONPATH"] = f"{self.path}{os.pathsep}{former}" if self.path else former
        try:
            self.second = self.cluster.add_node(num_cpus=1)
        finally:
            os.environ["PYTHONPATH"] = former

    def stop(self) -> None:
        with contextlib.suppress(Exception):  # parts of it are dead already
            self.cluster.shutdown()

    def mend(self) -> None:
        """What an autoscaler or an operator does: a node for a node, a cluster for a head."""
        if not self.alive(self.cluster.head_node):
            self.stop()
            self.start()
        elif not self.alive(self.second):
            with contextlib.suppress(Exception):
                self.cluster.remove_node(self.second, allow_graceful=False)
            self._join()

    @staticmethod
    def alive(node: Any) -> bool:
        return not node.dead_processes()

    def kill(self, node: Any) -> bool:
        """All processes of a node at once, as when its power is cut."""
        started = [p.process.pid for held in node.all_processes.values() for p in held]
        doomed = [pid for one in started for pid in (one, *descendants(one))]
        return sum(map(kill, doomed)) > 0

    def workers(self) -> dict[int, int]:
        """The processes that run a unit, Ray's above them too -> which, or -1."""
        found = {}
        for process in descendants(os.getpid()):
            words = _command(process)
            if b"work" in words and b"--unit" in words:
                found[process] = int(words[words.index(b"--unit") + 1])
            elif words[0].startswith(b"ray::_work"):
                found[process] = -1
        return found


def _command(process: int) -> list[bytes]:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return [b""]


@dataclass
class Driver:
    """One giving of the command."""

    folder: Path
    address: str
    url: str | None
    process: Any = None

    def __post_init__(self) -> None:
        arguments = (self.folder, self.address, self.url)
        self.process = FORKS.Process(target=_drive, args=arguments)
        self.process.start()

    def ends(self, seconds: float) -> bool:
        self.process.join(seconds)
        return self.process.exitcode is not None

    def end(self) -> int | None:
        """The exit code; None for a driver that hangs, which is killed."""
        hangs = not self.ends(HANGS)
        if hangs:
            self.process.kill()
            self.process.join()
        return None if hangs else self.process.exitcode


def _drive(folder: Path, address: str, url: str | None) -> None:
    from algocapture.launch.ray import Ray

    with open(f"{folder}.log", "a") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    sys.exit(0 if drive(VICTIM, folder, Ray(address=address), publish=url) else 3)
