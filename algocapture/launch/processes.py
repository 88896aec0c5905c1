"""Each unit in a process of its own, as many at once as there are cores for their threads.

A rest that would leave cores idle in a turn of its own joins the turn before: three units of one
thread on two cores run side by side and take 1.5 turns; two and one would take 2.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import algocapture
from algocapture.launch.base import (
    DONE,
    FAILED,
    INTERRUPTED,
    USAGE,
    Event,
    Launcher,
    Outcome,
    Unit,
    Watch,
    turn,
)
from algocapture.launch.worker import EVENTS

SOURCE = Path(algocapture.__file__).resolve().parents[1]
LOG_BYTES = 8_192  # the tail that is kept of what a worker prints
LINE_BYTES = 1 << 20  # a longer event is dropped
POLL = 0.1  # seconds between two looks at stop()
# Each library that starts threads reads its own variable, and reads it when it is loaded.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Processes(Launcher):
    """A worker that dies is retried once. `cores=None`: those this process may use."""

    cores: int | None = None
    grace: float = 60.0  # seconds a worker has to checkpoint before it is killed

    def __post_init__(self) -> None:
        if self.cores is not None and self.cores < 1:
            raise ValueError(f"cores must be at least 1 or None, got {self.cores!r}")

    def run(
        self,
        units: Iterable[Unit],
        watch: Watch = lambda name, event: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> list[Outcome]:
        cores = self.cores or len(os.sched_getaffinity(0))
        pool = _Pool(iter(enumerate(units)), cores, self.grace, watch)
        try:
            while pool.busy():
                if stop():
                    pool.interrupt()
                pool.admit()
                pool.wait(POLL)
        finally:
            pool.kill()
        return [pool.outcomes[place] for place in sorted(pool.outcomes)]


@dataclass(eq=False)
class _Worker:
    place: int
    unit: Unit
    tries: int
    process: subprocess.Popen[bytes]
    events: int  # the reading end of the pipe that carries JSON lines
    partial: bytes = b""
    log: bytes = b""
    closed: set[int] = field(default_factory=set)

    def open(self) -> set[int]:
        """The pipes that may still say something."""
        assert self.process.stdout is not None, "started with a pipe"
        return {self.events, self.process.stdout.fileno()} - self.closed


@dataclass
class _Pool:
    """The running workers of one call of `run`. Queued units are held as one iterator."""

    units: Iterator[tuple[int, Unit]]
    cores: int
    grace: float
    watch: Watch
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    running: list[_Worker] = field(default_factory=list)
    again: list[tuple[int, Unit, int]] = field(default_factory=list)
    deadline: float | None = None  # set once interrupted: then workers are killed
    queue: deque[tuple[int, Unit, int]] = field(default_factory=deque)  # the next few

    def busy(self) -> bool:
        while self.again:
            self.queue.appendleft(self.again.pop())
        ahead = 2 * self.cores - len(self.queue)
        self.queue += [(place, unit, 1) for place, unit in islice(self.units, max(ahead, 0))]
        return bool(self.running or self.queue)

    def admit(self) -> None:
        """Begin units while there are cores for their threads; one may always run."""
        while self.busy() and self.queue:
            place, unit, tries = self.queue[0]
            if self.deadline is not None:
                self.outcomes[place] = Outcome(unit.name, INTERRUPTED, tries - 1)
            elif self._fits(unit):
                self._begin(place, unit, tries)
            else:
                return
            self.queue.popleft()

    def _fits(self, unit: Unit) -> bool:
        threads = [worker.unit.threads for worker in self.running]
        if not threads or sum(threads) + unit.threads <= self.cores:
            return True
        rest = [*threads, *(unit.threads for _, unit, _ in self.queue)]
        # Threads of one unit wait for each other: only units of one thread may share a core.
        return max(rest) == 1 and len(rest) < 2 * self.cores

    def _begin(self, place: int, unit: Unit, tries: int) -> None:
        self.watch(unit.name, turn("started"))
        try:
            self.running.append(_start(place, unit, tries))
        except OSError as error:  # no such program, or no process left
            self.watch(unit.name, turn("ended", FAILED, str(error)))
            self.outcomes[place] = Outcome(unit.name, FAILED, tries, str(error))

    def wait(self, seconds: float) -> None:
        """Read what workers say for a while; note those that ended."""
        with selectors.DefaultSelector() as selector:
            for worker in self.running:
                for handle in worker.open():
                    selector.register(handle, selectors.EVENT_READ, worker)
            if not all(worker.open() for worker in self.running):
                seconds = 0.005  # its pipes have ended, so it is about to
            for key, _ in selector.select(seconds) if self.running else ():
                self._read(key.data, key.fd)
        for worker in [w for w in self.running if w.process.poll() is not None]:
            self._ended(worker)
        if self.deadline is not None and time.monotonic() > self.deadline:
            for worker in self.running:
                worker.process.kill()

    def _read(self, worker: _Worker, handle: int) -> None:
        data = os.read(handle, 1 << 16)
        if not data:
            worker.closed.add(handle)
        if handle != worker.events:
            worker.log = (worker.log + data)[-LOG_BYTES:]
            return
        *lines, rest = (worker.partial + data).split(b"\n")
        worker.partial = rest if len(rest) <= LINE_BYTES else b""
        for event in filter(None, map(_event, lines)):
            self.watch(worker.unit.name, event)

    def _ended(self, worker: _Worker) -> None:
        self.running.remove(worker)
        self._drain(worker)
        code, name = worker.process.returncode, worker.unit.name
        log = worker.log.decode("utf-8", "replace") if code != DONE else ""
        died = code not in (DONE, USAGE, INTERRUPTED)
        if died and self.deadline is not None:
            code, died = INTERRUPTED, False  # asked to end, and killed or failed while ending
        if died and worker.tries == 1:
            self.watch(name, turn("retried", code, log))
            self.again.append((worker.place, worker.unit, 2))
            return
        self.watch(name, turn("ended", code, log))
        self.outcomes[worker.place] = Outcome(name, code, worker.tries, log)

    def _drain(self, worker: _Worker) -> None:
        """The rest of the pipes. A grandchild may hold them open: what is there, no waiting."""
        for handle in worker.open():
            os.set_blocking(handle, False)
            with contextlib.suppress(BlockingIOError):
                while handle not in worker.closed:
                    self._read(worker, handle)
        _close(worker)

    def interrupt(self) -> None:
        """Ask the workers, once, to checkpoint and end."""
        if self.deadline is None:
            self.deadline = time.monotonic() + self.grace
            for worker in self.running:
                worker.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Leave no process behind, whatever happened."""
        for worker in self.running:
            worker.process.kill()
            worker.process.wait()
            _close(worker)
        self.running.clear()


def _start(place: int, unit: Unit, tries: int) -> _Worker:
    reading, writing = os.pipe()
    environment = os.environ | {name: str(unit.threads) for name in THREADS}
    if Path.cwd() == SOURCE:  # a checkout that is not installed, with -P in argv
        held = os.environ.get("PYTHONPATH")
        environment["PYTHONPATH"] = f"{SOURCE}{os.pathsep}{held}" if held else str(SOURCE)
    try:
        process = subprocess.Popen(
            unit.argv,
            stdin=subprocess.PIPE,  # never written: its end tells the worker that we died
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment | {EVENTS: str(writing)},
            pass_fds=(writing,),
            start_new_session=True,  # Ctrl-C reaches us alone; we ask the workers
        )
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    return _Worker(place, unit, tries, process, reading)


def _close(worker: _Worker) -> None:
    os.close(worker.events)
    for pipe in (worker.process.stdin, worker.process.stdout):
        if pipe is not None:
            pipe.close()


def _event(line: bytes) -> Event | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None
