"""When to end early: a time limit, SIGINT, SIGTERM, or SIGUSR1 (SLURM sends it before the end)."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Stop:
    """A context manager that is called to ask. The first signal asks to end at a safe point;
    a second SIGINT is a KeyboardInterrupt, which is safe too, only less tidy."""

    def __init__(self, seconds: float | None = None) -> None:
        if seconds is not None and not seconds >= 0:
            raise ValueError(f"seconds must be at least 0 or None, got {seconds!r}")
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self.why = ""
        self._before: dict[int, Any] = {}

    def __call__(self) -> bool:
        if not self.why and self.deadline is not None and time.monotonic() >= self.deadline:
            self.why = "time limit"
        return bool(self.why)

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():  # elsewhere Python refuses
            self._before = {number: signal.signal(number, self._asked) for number in SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _asked(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and self.why == "SIGINT":
            raise KeyboardInterrupt
        self.why = signal.Signals(number).name
