"""What a person sees while a run goes on: a live table in a terminal, else plain lines."""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from algocapture.experiment import Experiment
from algocapture.protocol.plan import DIVERGED


@dataclass
class Row:
    """One seed's line."""

    stage: int = 0
    size: int = 0
    samples: int = 0  # of the current stage
    spent: int = 0  # P, of the last decided stage
    error: str = ""
    state: str = "waits"
    begun: float = 0.0
    first: int = 0  # stages that were decided before this session
    paced: tuple[int, int, float] = (-1, 0, 0.0)  # stage, samples and time where a pace begins
    pace: float = 0.0  # samples a second, looks included

    def at(self, stage: int, size: int, samples: int) -> None:
        """The seed stands here now."""
        self.stage, self.size, self.samples = stage, size, samples
        now = time.monotonic()
        if self.paced[0] != stage:
            self.paced = (stage, samples, now)
        elif samples > self.paced[1] and now > self.paced[2]:
            self.pace = (samples - self.paced[1]) / (now - self.paced[2])


class Progress:
    """A context manager whose `watch` takes the launcher's events."""

    def __init__(self, experiment: Experiment, console: Console, quiet: bool) -> None:
        self.experiment, self.console, self.quiet = experiment, console, quiet
        self.rows = {seed: Row() for seed in range(experiment.seeds)}
        self.sizes = experiment.protocol.sizes(experiment.limits.largest)
        self._live: Live | None = None

    def __enter__(self) -> Progress:
        if self.console.is_terminal and not self.quiet:
            self._live = Live(get_renderable=self._table, console=self.console, transient=True)
            self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def watch(self, unit: str, event: dict[str, Any]) -> None:
        """Events come from our own workers, but through a pipe: a strange one is not fatal."""
        row = self.rows.get(event.get("seed", -1))
        if event["event"] == "unit":
            self._unit(unit, event)
        elif row is not None:
            self._seed(row, event)

    def _unit(self, unit: str, event: dict[str, Any]) -> None:
        if event["state"] == "retried":
            self.note(f"{unit} died with exit code {event['code']} and is tried again")

    def _seed(self, row: Row, event: dict[str, Any]) -> None:
        if not row.begun:
            row.begun, row.first = time.monotonic(), event.get("stage", 0)
        match event["event"]:
            case "train":
                row.at(event["stage"], event["size"], event["samples"])
                row.state = "trains"
            case "look":
                row.at(event["stage"], event["size"], event["samples"])
                row.error = f"{event['error']:.3f} [{event['low']:.3f}, {event['high']:.3f}]"
                row.state = "looks"
            case "stage":
                self._decided(row, event)

    def _decided(self, row: Row, event: dict[str, Any]) -> None:
        row.spent, row.state = event["spent"], event["outcome"]
        row.stage = event["index"] + 1
        if self._live is None and not self.quiet:
            self.note(
                f"seed {event['seed']}  T = {event['size']:<6} {ending(event)}  "
                f"P = {event['spent']:,}  error {row.error}"
            )

    def note(self, line: str) -> None:
        if not self.quiet:
            self.console.print(line, markup=False, soft_wrap=True)

    def _table(self) -> Table:
        table = Table(box=None)
        for name in ("seed", "stage", "T", "samples", "P", "error [95%]", "samples/s", "left"):
            table.add_column(name, justify="right")
        table.add_column("")
        for seed, row in self.rows.items():
            stage = f"{min(row.stage + 1, len(self.sizes))}/{len(self.sizes)}"
            table.add_row(
                str(seed), stage, str(row.size or ""), f"{row.samples:,}", f"{row.spent:,}",
                row.error, f"{row.pace:,.0f}" if row.pace else "", self._left(row), row.state,
            )  # fmt: skip
        return table

    def _left(self, row: Row) -> str:
        """As many stages as are left, at the pace of this session's."""
        done = row.stage - row.first
        if done <= 0 or row.state == "censored" or row.stage >= len(self.sizes):
            return ""
        left = (time.monotonic() - row.begun) / done * max(0, len(self.sizes) - row.stage)
        return f"{left / 60:.0f} min" if left > 90 else f"{left:.0f} s"


def ending(event: dict[str, Any]) -> str:
    """How a stage ended, in words."""
    why = event["limit"]
    if why is None:
        return str(event["outcome"])
    return f"{event['outcome']}{': ' if why == DIVERGED else ' by the limit on '}{why}"
