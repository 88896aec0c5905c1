"""The kinds of faults: each hits a trial's folder until it has injected its number."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from algocapture.experiment import drive
from algocapture.launch import Processes
from tests.crash import POINTS, FailFrom, KillAt, Work, end_of, in_child, start_child
from tests.victim import EXPERIMENT

if TYPE_CHECKING:
    from benchmarks.faults import Trial

Generator = np.random.Generator
Kind = Callable[["Trial", int, Generator, float], None]  # trial, number, draws, seconds of a run
KILLED = -signal.SIGKILL
DAY = 86_400.0


def killed_at_primitives(trial: Trial, number: int, draw: Generator, seconds: float) -> None:
    """At a random occurrence of each primitive of `store/files.py` in turn."""
    points = cycle(POINTS)
    while trial.row.injected < number:
        point = next(points)
        nth = int(np.exp(draw.uniform(0, np.log(16))))
        trial.hit(lambda f, p=point, n=nth: in_child(trial.work, f, KillAt(p, n)) == KILLED)
    trial.finish()


def killed_at_random(trial: Trial, number: int, draw: Generator, seconds: float) -> None:
    while trial.row.injected < number:
        after = draw.uniform(0, seconds / 2)
        trial.hit(lambda f, t=after: in_child(trial.work, f, kill_after=t) == KILLED)
    trial.finish()


def failing_disk(number_of_error: int) -> Kind:
    """From a random write, fsync, rename, link or mkdir on, every one fails."""

    def kind(trial: Trial, number: int, draw: Generator, seconds: float) -> None:
        while trial.row.injected < number:
            fault = FailFrom(number_of_error, int(draw.integers(1, 120)))
            trial.hit(lambda f, fault=fault: in_child(trial.work, f, fault) != 0)
        trial.finish()

    return kind


def short_writes(trial: Trial, number: int, draw: Generator, seconds: float) -> None:
    """Every write is cut short, then the process is killed at one of them."""
    while trial.row.injected < number:
        most, kill = int(draw.integers(50, 4000)), KillAt("write", int(draw.integers(2, 60)))

        def fault(point: str, path: Path, most: int = most, kill: KillAt = kill) -> int | None:
            kill(point, path)
            return most if point == "write" else None

        trial.hit(lambda f, fault=fault: in_child(trial.work, f, fault) == KILLED)
    trial.finish()


def damaged(pattern: str, how_many: int) -> Kind:
    """A run is killed, then the newest files of a kind are damaged, then it goes on."""

    def kind(trial: Trial, number: int, draw: Generator, seconds: float) -> None:
        while trial.row.injected < number:
            in_child(trial.work, trial.folder, KillAt("rename", int(draw.integers(12, 50))))
            trial.audit()
            parents = sorted({path.parent for path in trial.folder.glob(pattern)})
            for parent in parents:
                for path in sorted(parent.glob(pattern.rpartition("/")[2]))[-how_many:]:
                    damage(path, draw)
                    trial.row.injected += 1
            trial.seen -= {p for p in trial.seen if "stage" in pattern}  # gone by our own hand
            trial.finish()

    return kind


def damage(path: Path, draw: Generator) -> None:
    """One of: a flipped bit, cut short, zeros, empty, removed, another file's bytes."""
    data = bytearray(path.read_bytes())
    place = int(draw.integers(len(data)))
    match int(draw.integers(6)):
        case 0:
            data[place] ^= 1 << int(draw.integers(8))
        case 1:
            del data[place:]
        case 2:
            data[place:] = bytes(len(data) - place)
        case 3:
            data.clear()
        case 4:
            path.unlink()
            return
        case _:
            data = bytearray((path.parent.parent / "config.json").read_bytes())
    path.write_bytes(data)


def two_drivers(trial: Trial, number: int, draw: Generator, seconds: float) -> None:
    """Two and three at once on one folder; then all but the last are killed."""
    while trial.row.injected < number:
        children = []
        for _ in range(int(draw.integers(2, 4))):
            children.append(start_child(trial.work, trial.folder))
            time.sleep(draw.choice([0.0, draw.uniform(0, seconds / 2)]))
        for child in children[:-1]:
            os.kill(child, signal.SIGKILL)
        for child in children:
            end_of(child)
        trial.row.injected += len(children) - 1
        trial.audit()
        if draw.random() < 0.3:
            trial.finish()
    trial.finish()


def jumping_clock(trial: Trial, number: int, draw: Generator, seconds: float) -> None:
    """Each reading of the time of day is off by up to ten years either way, files have dates of
    the past and the future, and then the process is killed."""
    while trial.row.injected < number:
        for path in trial.folder.rglob("*"):
            os.utime(path, (lambda t: (t, t))(time.time() + draw.uniform(-3650, 3650) * DAY))
        after, source = draw.uniform(0.1, 0.6) * seconds, int(draw.integers(2**31))
        work = _with_clock(trial.work, source)
        trial.hit(lambda f, w=work, t=after: in_child(w, f, kill_after=t) == KILLED)
    trial.finish()


def _with_clock(true_work: Work, source: int) -> Work:
    def work(folder: Path) -> None:
        jumps, true = np.random.default_rng(source), time.time
        time.time = lambda: true() + jumps.uniform(-3650, 3650) * DAY  # in this child alone
        true_work(folder)

    return work


def driven(folder: Path) -> None:
    assert drive(EXPERIMENT, folder, Processes(cores=2))


def killed_drivers(trial: Trial, number: int, draw: Generator, seconds: float) -> None:
    """The driver of worker processes is killed: its workers end at once."""
    trial.work = driven
    while trial.row.injected < number:
        child = start_child(driven, trial.folder)
        if moment(partial(decided, trial.folder), partial(alive, child), draw):
            trial.row.injected += kill(child)
        code = end_of(child)
        trial.audit()
        if code == 0:
            trial.finish()
    trial.finish()


def killed_workers(trial: Trial, number: int, draw: Generator, seconds: float) -> None:
    """Workers are killed, sometimes so often that the driver gives a unit up."""
    trial.work = driven
    while trial.row.injected < number:
        child = start_child(driven, trial.folder)
        while trial.row.injected < number and alive(child):
            moment(partial(decided, trial.folder), partial(alive, child), draw)
            for worker in descendants(child)[: int(draw.integers(1, 3))]:
                trial.row.injected += kill(worker)
            trial.audit()
        end_of(child)
        trial.finish()


def decided(folder: Path) -> set[str]:
    return {str(path) for path in folder.glob("seed-*/stage-*.json")}


def moment(
    marks: Callable[[], set[str]], living: Callable[[], bool], draw: Generator, slack: float = 0.1
) -> bool:
    """Wait until just after `marks` changed, one time in four until any moment; False if all was
    over before. Most of a driver's life is its workers' start, which blind waits would hit."""
    before = marks()
    end = time.monotonic() + draw.uniform(0, 8) + 60 * (draw.random() < 0.75)
    while living():
        if marks() != before:
            time.sleep(draw.uniform(0, slack))
            return living()
        if time.monotonic() > end:
            return True
        time.sleep(0.01)
    return False


def kill(process: int) -> bool:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def alive(process: int) -> bool:
    return _state(process)[0] not in "ZX?"


def _state(process: int) -> tuple[str, int]:
    """State and parent of a process."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "?", 0
    return fields[0], int(fields[1])


def descendants(process: int) -> list[int]:
    """The processes below one, children before their children."""
    everyone = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
    parents = {one: _state(one)[1] for one in everyone}
    found = [process]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return [one for one in found[1:] if _state(one)[0] not in "ZX?"]


KINDS: dict[str, tuple[int, Kind]] = {
    "killed at a primitive of the store": (300, killed_at_primitives),
    "killed at a random instant": (150, killed_at_random),
    "disk full": (60, failing_disk(errno.ENOSPC)),
    "disk read-only": (30, failing_disk(errno.EROFS)),
    "disk with I/O errors": (40, failing_disk(errno.EIO)),
    "writes cut short, then killed": (40, short_writes),
    "newest checkpoint damaged": (80, damaged("unit-*/checkpoint-*", 1)),
    "all checkpoints damaged": (30, damaged("unit-*/checkpoint-*", 2)),
    "newest stage damaged": (30, damaged("seed-*/stage-*", 1)),
    "two or three drivers at once, then killed": (60, two_drivers),
    "clock jumps, then killed": (50, jumping_clock),
    "driver killed above its workers": (20, killed_drivers),
    "workers killed": (30, killed_workers),
}
