"""The worker's side of `processes`: events go up a pipe, and no worker outlives its driver."""

from __future__ import annotations

import contextlib
import json
import os
import threading

from algocapture.launch.base import INTERRUPTED, Emit, Event

EVENTS = "ALGOCAPTURE_EVENTS"  # the number of the pipe's writing end


def connect() -> Emit:
    """Call once at the start of a worker: where its events go.

    When the driver ends without having asked the worker to end, because it was killed, this
    process exits at once: what it did since its last checkpoint is done again by the next
    driver, which would otherwise find the unit in use. Outside of a launcher events go nowhere.
    """
    number = os.environ.pop(EVENTS, None)  # processes that the worker starts do not inherit it
    if number is None or not number.isdecimal():
        return lambda event: None
    pipe = int(number)
    os.set_inheritable(pipe, False)
    threading.Thread(target=_follow_driver, name="algocapture-driver", daemon=True).start()

    def emit(event: Event) -> None:
        line = json.dumps(event).encode("ascii") + b"\n"
        with contextlib.suppress(BrokenPipeError):
            while line:
                line = line[os.write(pipe, line) :]

    return emit


def _follow_driver() -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 1):
            pass
    os._exit(INTERRUPTED)
