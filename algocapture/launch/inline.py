"""One unit after the other in this process: for one core, a debugger, a notebook."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from algocapture.launch.base import (
    DONE,
    FAILED,
    INTERRUPTED,
    USAGE,
    Launcher,
    Outcome,
    Refused,
    Unit,
    Watch,
    turn,
)


@dataclass(frozen=True)
class Inline(Launcher):
    """Nothing is retried: what failed here would fail again."""

    def run(
        self,
        units: Iterable[Unit],
        watch: Watch = lambda name, event: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> list[Outcome]:
        return [
            Outcome(unit.name, INTERRUPTED) if stop() else self._one(unit, watch) for unit in units
        ]

    def _one(self, unit: Unit, watch: Watch) -> Outcome:
        watch(unit.name, turn("started"))
        log = ""
        try:
            code = unit.call(partial(watch, unit.name))
        except Refused as error:
            code, log = USAGE, f"Error: {error}\n"
        except Exception:
            code, log = FAILED, traceback.format_exc()
        watch(unit.name, turn("ended", code, log))
        return Outcome(unit.name, code, 1, log if code != DONE else "")
