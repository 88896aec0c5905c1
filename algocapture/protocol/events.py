"""What the engine tells whoever watches. Plain data, one JSON object each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Trained:
    """One training step of the acting members."""

    stage: int
    size: int
    losses: dict[int, float]  # member -> loss
    samples: dict[int, int]  # member -> training instances in this stage


@dataclass(frozen=True)
class Looked:
    """One member was looked at."""

    member: int
    stage: int
    size: int
    look: dict[str, Any]


@dataclass(frozen=True)
class Decided:
    """A stage of one member is passed or censored. `record` is what the store keeps."""

    member: int
    record: dict[str, Any]


Event = Trained | Looked | Decided
