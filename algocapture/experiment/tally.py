"""How far a sweep is, for `status`: units by state, and when it will end at the present pace."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path

from algocapture.experiment.running import Experiment
from algocapture.launch import DONE, INTERRUPTED, Outcome
from algocapture.launch.base import Event
from algocapture.store import RunFolder, StoreError
from algocapture.store.sweep import write_progress

INTERVAL = 2.0  # seconds between two writings
MOST_FAILED = 100  # failures that are listed; all are counted


class Tally:
    """Written to progress.json as units go on. A unit's share grows with its decided stages."""

    def __init__(self, out: Path, units: Mapping[str, int]) -> None:
        self.out = out
        self.rows = {
            name: {"units": number, "done": 0, "running": 0, "failed": 0}
            for name, number in units.items()
        }
        self.listed: list[dict[str, object]] = []
        self._share: dict[str, float] = {}  # of units that were handed out and have not ended
        self._step: dict[str, float] = {}  # run -> what one stage of one seed is of a unit
        self._running: set[str] = set()
        self._gained = 0.0  # shares of units won since this session began
        self._begun, self._written = time.monotonic(), 0.0
        self.write()

    def opened(self, name: str, left: list[int], experiment: Experiment, run: RunFolder) -> None:
        """A run was opened; these of its units are not done."""
        self.rows[name]["done"] = experiment.units() - len(left)
        stages = len(experiment.protocol.sizes(experiment.limits.largest))
        self._step[name] = 1 / (stages * experiment.population)
        for unit in left:
            held = sum(_stages(run, seed) for seed in experiment.seeds_of(unit))
            self._share[f"{name}/unit-{unit:03d}"] = min(1.0, held * self._step[name])
        self._soon()

    def watch(self, unit: str, event: Event) -> None:
        name = unit.partition("/")[0]
        if event.get("event") == "stage":
            self._gain(unit, self._step[name])
        elif event.get("event") == "unit":
            if event["state"] == "started":
                self._running.add(unit)
            elif event["state"] == "ended":
                self._ended(name, unit, event["code"])
            self.rows[name]["running"] = sum(u.startswith(f"{name}/") for u in self._running)
        self._soon()

    def failed(self, outcome: Outcome) -> None:
        row = self.rows[outcome.name.partition("/")[0]]
        row["failed"] = min(row["failed"] + 1, row["units"])
        last = outcome.log.rstrip().rpartition("\n")[2][:500]
        self.listed.append({"unit": outcome.name, "code": outcome.code, "last": last})
        del self.listed[MOST_FAILED:]

    def write(self) -> None:
        """That it cannot be written, as on a full disk, is no reason to stop."""
        self._written = time.monotonic()
        with contextlib.suppress(StoreError):
            write_progress(self.out, self._body())

    def _body(self) -> dict[str, object]:
        units = sum(row["units"] for row in self.rows.values())
        done, failed = (sum(row[k] for row in self.rows.values()) for k in ("done", "failed"))
        whole = done + sum(self._share.values())
        seconds = None
        if self._gained > 0:
            pace = self._gained / (time.monotonic() - self._begun)
            seconds = round(max(units - failed - whole, 0.0) / pace, 1)
        return {
            "runs": self.rows,
            "share": round(whole / units, 6) if units else 1.0,
            "seconds_left": seconds,
            "written": round(time.time(), 1),
            "failures": self.listed,
        }

    def _ended(self, name: str, unit: str, code: int) -> None:
        self._running.discard(unit)
        if code == DONE:
            self._gain(unit, 1.0)
            self.rows[name]["done"] += 1
        if code != INTERRUPTED:
            del self._share[unit]

    def _gain(self, unit: str, share: float) -> None:
        before = self._share.get(unit, 0.0)
        self._share[unit] = min(1.0, before + share)
        self._gained += self._share[unit] - before

    def _soon(self) -> None:
        if time.monotonic() - self._written > INTERVAL:
            self.write()


def _stages(run: RunFolder, seed: int) -> int:
    try:
        return len(run.stages(seed))
    except StoreError:  # damaged: the unit writes it anew
        return 0
