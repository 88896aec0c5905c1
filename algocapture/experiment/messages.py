"""What a running unit tells: plain JSON messages, which cross processes as lines."""

from __future__ import annotations

import time
from collections.abc import Sequence

from algocapture.launch.base import Emit
from algocapture.protocol import Decided, Event, Looked, Trained

INTERVAL = 0.25  # seconds between messages about training: people read no faster


class Reporter:
    """Turns events of one unit's members into messages about seeds."""

    def __init__(self, emit: Emit, seeds: Sequence[int]) -> None:
        self.emit, self.seeds = emit, list(seeds)
        self._last = float("-inf")

    def events(self, events: Sequence[Event]) -> None:
        for event in events:
            self._event(event)

    def _event(self, event: Event) -> None:
        match event:
            case Trained():
                self._trained(event)
            case Looked():
                self.emit(
                    {"event": "look", "seed": self.seeds[event.member], "stage": event.stage}
                    | {k: event.look[k] for k in ("size", "samples", "n", "error", "low", "high")}
                    | {"decision": event.look["decision"]}
                )
            case Decided():
                keys = ("index", "size", "outcome", "limit", "spent", "spent_low")
                self.emit(
                    {"event": "stage", "seed": self.seeds[event.member]}
                    | {k: event.record[k] for k in keys}
                )

    def _trained(self, event: Trained) -> None:
        now = time.monotonic()
        if now - self._last < INTERVAL:
            return
        self._last = now
        for member, loss in event.losses.items():
            self.emit(
                {
                    "event": "train",
                    "seed": self.seeds[member],
                    "stage": event.stage,
                    "size": event.size,
                    "samples": event.samples[member],
                    "loss": loss,
                }
            )
