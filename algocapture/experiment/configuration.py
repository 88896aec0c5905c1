"""What an experiment is: frozen fields. `experiment/running.py` adds how it is run.

Its identity is everything but the number of seeds and the limits: entering a folder with the same
identity goes on where it stopped, or extends it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from algocapture.config import to_json
from algocapture.learners.base import LearnerConfig
from algocapture.protocol.plan import Incremental, Limits, Protocol
from algocapture.rng import Seed
from algocapture.tasks.base import Task

MOST_SEEDS = 10_000  # more is a slip of the finger, and listing them would take all day


@dataclass(frozen=True)
class Configuration:
    """A capture test: what is learnt, by whom, how it is asked, how often."""

    task: Task
    learner: LearnerConfig
    protocol: Protocol = field(default_factory=Incremental)
    limits: Limits = field(default_factory=Limits)
    seeds: int = 3
    root: int = 0  # of the tree of seeds
    population: int = 1  # seeds in one unit of work, trained side by side
    threads: int = 1  # of a unit: part of the result, since sums depend on it
    device: str = "cpu"
    margin: float = 0.25  # of the verdict on kappa, fixed before the run
    confidence: float = 0.95
    keep_models: bool = True  # the weights at every passed stage, for `load_model`

    def __post_init__(self) -> None:
        for name in ("seeds", "population", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be >= 1, got {getattr(self, name)!r}")
        if self.seeds > MOST_SEEDS:
            raise ValueError(f"seeds must be <= {MOST_SEEDS}, got {self.seeds!r}")
        if self.seeds % self.population:
            raise ValueError(
                f"seeds = {self.seeds} must be a multiple of population = {self.population}: "
                "a unit of work is never partly filled, or more seeds would change it"
            )
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence must lie in (0, 1), got {self.confidence!r}")
        if self.protocol.t0 < self._smallest():
            raise ValueError(
                f"t0 = {self.protocol.t0} is below {type(self.task).__name__}'s smallest size, "
                f"{self._smallest()}"
            )
        if self.limits.largest <= self.protocol.t0:
            raise ValueError(
                f"largest = {self.limits.largest} must exceed t0 = {self.protocol.t0}: "
                "capture is about growing sizes"
            )

    def _smallest(self) -> int:
        return self.task.spec.smallest

    def identity(self) -> dict[str, Any]:
        """What must not change in a run's folder."""
        data = to_json(self)
        return {k: v for k, v in data.items() if k not in FREE}

    def extension(self) -> dict[str, Any]:
        """What may grow."""
        data = to_json(self)
        return {k: data[k] for k in FREE}

    def units(self) -> int:
        return self.seeds // self.population

    def seeds_of(self, unit: int) -> list[int]:
        return list(range(unit * self.population, (unit + 1) * self.population))

    def seed(self, number: int) -> Seed:
        return Seed(self.root).child("seed", number)


FREE = ("limits", "seeds", "keep_models")
