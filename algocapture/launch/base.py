"""Where and when a unit of work runs, never what is in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 3  # exit codes of a unit, as of the command line

Event = dict[str, Any]  # one JSON object
Emit = Callable[[Event], None]
Watch = Callable[[str, Event], None]  # called with the unit's name


@dataclass(frozen=True)
class Unit:
    """One unit of work, said twice: as a call in this process and as a command.

    Both return or exit with one of the codes above and may be run again after a crash: they
    continue from their checkpoint. `call` should itself heed the stop that `run` is given.
    """

    name: str
    call: Callable[[Emit], int]
    argv: tuple[str, ...]
    threads: int = 1


@dataclass(frozen=True)
class Outcome:
    """How a unit ended. A negative code is the signal that killed its last process."""

    name: str
    code: int
    tries: int = 1
    log: str = ""  # the tail of what it printed, unless it is done


class Refused(Exception):
    """Ends a unit's call as bad input or a full disk ends a command: one message, code USAGE."""


class Launcher(ABC):
    """Runs units. A failure never stops the others."""

    here: ClassVar[bool] = True  # on this machine, which must then have the units' device

    @abstractmethod
    def run(
        self,
        units: Iterable[Unit],
        watch: Watch = lambda name, event: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> list[Outcome]:
        """The outcomes, in the order of the units.

        `units` may be lazy. `watch` sees the events of the units, and one
        `{"event": "unit", "state": "started" | "retried" | "ended", "code", "log"}` of the
        launcher at each turn. Once `stop()` is true no unit is begun, those running are asked
        to checkpoint, and what is not done has the code INTERRUPTED.
        """


def turn(state: str, code: int | None = None, log: str = "") -> Event:
    return {"event": "unit", "state": state, "code": code, "log": log}


def exit_code(outcomes: Iterable[Outcome]) -> int:
    """Of the whole: failed if any failed, else interrupted if any was, else done."""
    codes = {outcome.code for outcome in outcomes}
    bad = codes - {DONE, INTERRUPTED}
    if bad:
        return USAGE if bad == {USAGE} else FAILED
    return INTERRUPTED if INTERRUPTED in codes else DONE
