"""One process per folder, on one machine or on a shared disk, without trusting any clock.

Lock files are numbered, `.lock-000001`, `.lock-000002`, ...; who created the highest number
holds the lock until its record says released or its process is found dead. To take over is to
create the next number, which link(2) grants to one process only, so two that judge the same
holder dead cannot both win. Numbers only grow; the holder removes lower ones.

A holder on the same host, boot and pid namespace is judged by its pid and start time. Any
other is judged by its counter, which it advances while it lives: it is dead when the counter
stood still for `patience` seconds of the observer's own monotonic clock.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType

import algocapture.store.files as files
from algocapture.store.files import StoreError

_NAME = re.compile(r"\.lock-(\d{6}|[1-9]\d{6,11})", re.ASCII)
BEAT = 3.0  # seconds between two advances of the counter
MOST = 65_536  # bytes of a lock file; ours have some 200
PATIENCE = 20.0  # several beats, so that a slow disk does not look like death


class LockedError(StoreError):
    """Another process works on this folder."""


@dataclass(frozen=True)
class Holder:
    """What a lock file says of who holds it."""

    host: str
    boot: str
    space: str  # pid namespace: containers of one boot have pids of their own
    pid: int
    start: str  # start time of the process in ticks since boot: pids are reused
    counter: int = 0
    released: bool = False

    @classmethod
    def me(cls) -> Holder:
        space = ""
        with contextlib.suppress(OSError):
            space = os.readlink("/proc/self/ns/pid")
        pid = os.getpid()
        return cls(socket.gethostname(), _text("/proc/sys/kernel/random/boot_id"), space, pid,
                   _process(pid)[1])  # fmt: skip

    def near(self, other: Holder) -> bool:
        """Do both see the same table of processes?"""
        return (self.host, self.boot, self.space) == (other.host, other.boot, other.space)

    def running(self) -> bool:
        """For a holder that is near: does its process still run?"""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except (PermissionError, OverflowError):
            pass
        state, start = _process(self.pid)
        # A killed process whose parent has not yet waited for it is a zombie, and dead.
        return state not in "ZX" and self.start == start

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def _text(path: str) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    return ""


def _process(pid: int) -> tuple[str, str]:
    """(state, start time) from /proc; ("?", "") where there is none."""
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (fields[0], fields[19]) if len(fields) > 19 else ("?", "")


class Lock:
    """A context manager that holds a folder. `check` raises if the lock was lost meanwhile."""

    def __init__(
        self,
        folder: Path,
        *,
        wait: float = 0.0,
        patience: float = PATIENCE,
        beat: float = BEAT,
        notify: Callable[[str], None] = lambda message: None,
    ) -> None:
        self.folder = folder
        self.wait = wait  # seconds to wait for a living holder before being refused
        self.patience = patience
        self.beat = beat
        self.notify = notify
        self._number = 0
        self._mine = Holder.me()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Lock:
        deadline = time.monotonic() + self.wait
        while True:
            number = self._highest()
            holder = self._living(number)
            if holder is None and self._claim(number + 1):
                break
            if holder is not None and time.monotonic() >= deadline:
                raise LockedError(
                    f"{self.folder} is in use by {holder}: wait for it, or stop it and try again"
                )
            time.sleep(0.02)
        self._ended.clear()
        self._thread = threading.Thread(target=self._beat, name="algocapture-lock", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        with contextlib.suppress(StoreError):  # a full disk: our pid tells the next one
            if self._highest() == self._number:
                self._write(replace(self._mine, released=True))

    def check(self) -> None:
        """Before a write that must not collide: has another process judged us dead?"""
        if self._highest() != self._number:
            raise LockedError(
                f"{self.folder} was taken over by another process while this one stood still: "
                "nothing was written since; resume when the other is done"
            )

    def _path(self, number: int) -> Path:
        return self.folder / f".lock-{number:06d}"

    def _numbers(self) -> list[int]:
        matches = map(_NAME.fullmatch, files.names(self.folder))
        return sorted(int(match[1]) for match in matches if match)

    def _highest(self) -> int:
        return max(self._numbers(), default=0)

    def _living(self, number: int) -> str | None:
        """Who holds this number, or None if nobody, or nobody alive."""
        if number == 0:
            return None
        data = self._read(number)
        holder = _decode(data)
        if holder is not None and holder.released:
            return None
        if holder is not None and holder.near(self._mine):
            return str(holder) if holder.running() else None
        name = str(holder) if holder else "a process whose lock file cannot be read"
        self.notify(f"{self.folder}: looking for {self.patience:g} s whether {name} is alive")
        return name if self._moved(number, data) else None

    def _moved(self, number: int, data: bytes) -> bool:
        end = time.monotonic() + self.patience
        while time.monotonic() < end:
            time.sleep(min(0.2, self.patience / 10))
            if self._highest() != number or self._read(number) != data:
                return True
        return False

    def _read(self, number: int) -> bytes:
        try:
            return files.read(self._path(number), MOST)
        except StoreError:
            return b""

    def _claim(self, number: int) -> bool:
        if not files.write_new(self._path(number), _encode(self._mine)):
            return False
        if self._highest() != number:  # our view was old: a higher number exists
            files.remove(self._path(number))
            return False
        self._number = number
        with contextlib.suppress(StoreError):  # lower numbers are untidy, not wrong
            for lower in self._numbers():
                if lower < number:
                    files.remove(self._path(lower))
        return True

    def _beat(self) -> None:
        while not self._ended.wait(self.beat):
            self._mine = replace(self._mine, counter=self._mine.counter + 1)
            with contextlib.suppress(StoreError):
                if self._highest() == self._number:
                    self._write(self._mine)

    def _write(self, holder: Holder) -> None:
        files.write_atomic(self._path(self._number), _encode(holder), durable=False)


def holder_of(folder: Path) -> str | None:
    """Who holds a folder as far as one look tells: on another machine, who has not released it."""
    lock = Lock(folder)
    holder = _decode(lock._read(lock._highest()))
    if holder is None or holder.released:
        return None
    gone = holder.near(Holder.me()) and not holder.running()
    return None if gone else str(holder)


def _encode(holder: Holder) -> bytes:
    return json.dumps(asdict(holder), sort_keys=True).encode("ascii")


def _decode(data: bytes) -> Holder | None:
    """None for anything that is not a record of ours: it is then judged by not moving."""
    try:
        record = json.loads(data)
        holder = Holder(**record)
    except (ValueError, TypeError, RecursionError):
        return None
    types = {f: type(v) for f, v in asdict(holder).items()}
    return holder if types == {f: type(v) for f, v in asdict(_EXAMPLE).items()} else None


_EXAMPLE = Holder("", "", "", 1, "")
