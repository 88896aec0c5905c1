"""A harness that kills runs: forked children, faults at every primitive of `store/files.py`."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from algocapture.ledger import Ledger
from algocapture.store import Checkpoint, RunFolder, StoreError, files, verify

Work = Callable[[Path], None]  # begins or resumes a run and brings it to its end
POINTS = ("create", "write", "torn", "fsync", "rename", "fsync-folder", "link", "mkdir", "remove",
          "list", "read")  # fmt: skip
REFUSED, CRASHED = 41, 42  # how a child ends on a StoreError, and on any other error


@dataclass
class KillAt:
    """SIGKILL before the nth primitive of a kind; "torn" is a write that was cut short."""

    point: str
    nth: int
    armed: bool = False

    def __call__(self, point: str, path: Path) -> int | None:
        if self.armed:
            os.kill(os.getpid(), signal.SIGKILL)
        if point == {"torn": "write"}.get(self.point, self.point):
            self.nth -= 1
            if self.nth == 0 and self.point == "torn":
                self.armed = True
                return 5
            if self.nth == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return None


@dataclass
class FailFrom:
    """An OSError at every writing primitive from the nth on, after a cut-short write."""

    errno: int
    nth: int

    def __call__(self, point: str, path: Path) -> int | None:
        if point not in ("create", "write", "fsync", "rename", "mkdir", "link"):
            return None
        self.nth -= 1
        if self.nth == 0 and point == "write":
            return 5
        if self.nth <= 0:
            raise OSError(self.errno, os.strerror(self.errno))
        return None


def in_child(
    work: Work, folder: Path, fault: files.Fault | None = None, kill_after: float | None = None
) -> int:
    """Exit code of a forked child that does the work; negative if it was killed."""
    child = start_child(work, folder, fault)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    return end_of(child)


def start_child(work: Work, folder: Path, fault: files.Fault | None = None) -> int:
    """The pid of a forked child that does the work."""
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 warns: threads of torch
        child = os.fork()
    if child == 0:
        os._exit(_do(work, folder, fault))
    return child


def end_of(child: int) -> int:
    """Wait for a child; its exit code, negative if it was killed."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _do(work: Work, folder: Path, fault: files.Fault | None) -> int:
    files.fault = fault
    try:
        work(folder)
    except StoreError:
        return REFUSED
    except BaseException:
        traceback.print_exc()
        return CRASHED
    return 0


@dataclass
class Campaign:
    """Kills a run again and again; after each kill all that was decided must still be there."""

    work: Work
    root: Path
    reference: bytes = b""
    expected: dict[int, list[dict]] = field(default_factory=dict)
    seconds: float = 0.0  # of the uninterrupted run
    kills: int = 0
    finished: int = 0
    decided: dict[int, int] = field(default_factory=dict)
    folders: int = 0

    def __post_init__(self) -> None:
        folder = self.root / "uninterrupted"
        start = time.perf_counter()
        assert in_child(self.work, folder) == 0
        self.seconds = time.perf_counter() - start
        run = RunFolder(folder)
        self.reference = (folder / "result.json").read_bytes()
        self.expected = {seed: run.stages(seed) for seed in run.seeds()}
        self.fresh()

    @property
    def folder(self) -> Path:
        return self.root / f"killed-{self.folders:03d}"

    def fresh(self) -> None:
        self.folders += 1
        self.decided = {}

    def kill(self, fault: KillAt | None = None, after: float | None = None) -> bool:
        """Continue the run until the kill, or its end: then the result must be the same.

        Was it killed?
        """
        code = in_child(self.work, self.folder, fault, after)
        assert code in (0, -signal.SIGKILL), f"the child ended with {code}"
        self.kills += code != 0
        self.check()
        if code == 0:
            self.compare()
        return code != 0

    def finish(self) -> None:
        assert in_child(self.work, self.folder) == 0
        self.compare()

    def compare(self) -> None:
        assert (self.folder / "result.json").read_bytes() == self.reference
        assert verify(self.folder).result == "matches"
        self.finished += 1
        self.fresh()

    def check(self) -> None:
        """Everything on disk is whole; decided stages are those of the uninterrupted run, and
        none has vanished."""
        if not (self.folder / "config.json").exists():
            return
        run = RunFolder(self.folder)
        assert verify(self.folder).problems == ()
        for seed in self.expected:
            stages = run.stages(seed)
            assert stages == self.expected[seed][: len(stages)]
            assert len(stages) >= self.decided.get(seed, 0)
            self.decided[seed] = len(stages)


SIZES = (8, 10, 12)


def toy(folder: Path) -> None:
    """A run in the manner of the real one: two units, samples through ledgers, commits."""
    identity = {"type": "Toy", "sizes": list(SIZES)}
    with RunFolder.enter(folder, identity, {"seeds": 2}) as run:
        for seed in (0, 1):
            _toy_unit(run, seed)
        run.write_result()


def _toy_unit(run: RunFolder, seed: int) -> None:
    with run.unit(seed, [seed]) as unit:
        saved = unit.restore()
        weight = saved.arrays["weight"].copy() if saved else np.zeros(4)
        state = saved.state if saved else {"step": 0, "ledger": []}
        step, ledger = state["step"], Ledger.from_json(state["ledger"])
        stages = list(saved.stages.get(seed, ())) if saved else []
        while len(stages) < len(SIZES):
            generator = np.random.default_rng([seed, step])
            batch = ledger.draw(generator.random, 16, stage=str(len(stages)), account="train")
            weight = weight * 0.9 + np.sin(batch[:4] + weight)
            step += 1
            time.sleep(0.0002)
            if step % 20 == 0:
                stages.append({"size": SIZES[len(stages)], "spent": ledger.spent().samples,
                               "error": float(weight.sum())})  # fmt: skip
            if step % 10 == 0:
                state = {"step": step, "ledger": ledger.to_json()}
                unit.commit(Checkpoint({"weight": weight}, state, {seed: stages}))
