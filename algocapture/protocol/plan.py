"""The two protocols of the paper: which sizes a stage trains on and which it must pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from algocapture.config import register
from algocapture.stats.sequential import SequentialTest, next_look

MOST_STAGES = 10_000
DIVERGED = "loss not finite"  # what ends a member that no larger limit can help


@dataclass(frozen=True)
class Protocol(ABC):
    """What is the same at every size: error, batch, looks, growth. Stage 0 is the base stage."""

    t0: int = 50
    delta: float = 0.05
    growth: float = 1.2
    batch: int = 256  # training instances in a step, at every size
    base: Literal["at", "upto"] = "at"  # stage 0 trains at T0, or on all sizes up to it
    grid: int = 8  # sizes of a stage: a stratified grid, since thousands defeat compiled steps
    test: SequentialTest = field(default_factory=SequentialTest)
    probes: tuple[float, ...] = (2.0, 3.0)  # error without adaptation, at these multiples of T
    probe_samples: int = 128
    baseline_samples: int = 256

    cumulative: ClassVar[bool]

    def __post_init__(self) -> None:
        for name in ("t0", "batch", "grid", "probe_samples"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be >= 1, got {getattr(self, name)!r}")
        if self.baseline_samples < 0:
            raise ValueError(f"baseline_samples must be >= 0, got {self.baseline_samples!r}")
        if not 0 < self.delta < 1:
            raise ValueError(f"delta must lie in (0, 1), got {self.delta!r}")
        if not 1 < self.growth <= 10:
            raise ValueError(f"growth must lie in (1, 10], got {self.growth!r}")
        if any(not 1 < multiple <= 100 for multiple in self.probes):
            raise ValueError(f"probes are multiples of T in (1, 100], got {self.probes!r}")

    def size(self, stage: int) -> int:
        """T of a stage: T0, then growing by the factor, by at least one."""
        size = self.t0
        for _ in range(stage):
            size = self._next(size)
        return size

    def sizes(self, largest: int) -> list[int]:
        """All sizes up to `largest`. None is clipped, so that a larger limit extends the run."""
        found: list[int] = []
        size = self.t0
        while size <= largest:
            found.append(size)
            if len(found) > MOST_STAGES:
                raise ValueError(
                    f"growth = {self.growth!r} takes more than {MOST_STAGES:,} stages to "
                    f"largest = {largest}: raise growth, or lower largest"
                )
            size = self._next(size)
        return found

    def _next(self, size: int) -> int:
        return max(size + 1, round(size * self.growth))

    def training_sizes(self, stage: int, smallest: int) -> list[int]:
        """The stratified grid of sizes that a stage trains on."""
        if stage == 0:
            low = self.t0 if self.base == "at" else smallest
            return stratified(low, self.t0, self.grid)
        return stratified(self.start(stage), self.size(stage), self.grid)

    @abstractmethod
    def start(self, stage: int) -> int:
        """The least size that an adaptation stage trains on."""

    def first_look(self, stage: int) -> int:
        """Steps before the first look: none, so that a stage may cost nothing."""
        return 0

    def look_after(self, stage: int, steps: int) -> int | None:
        """Steps at the look after a failing one; None: the stage has failed."""
        return next_look(steps)


@register
@dataclass(frozen=True)
class Incremental(Protocol):
    """Each stage adapts the last one's model on sizes uniform on [T_prev, T]; P is cumulative."""

    cumulative: ClassVar[bool] = True

    def start(self, stage: int) -> int:
        return self.size(stage - 1)


@register
@dataclass(frozen=True)
class WholeInterval(Protocol):
    """Each T on its own, from the base model, on sizes uniform on [T0, T]."""

    cumulative: ClassVar[bool] = False

    def start(self, stage: int) -> int:
        return self.t0


@register
@dataclass(frozen=True)
class Limits:
    """How far a run goes. No part of its identity: larger limits extend it."""

    largest: int = 1000
    samples: int = 10_000_000  # training instances of a stage
    flops: int | None = None  # training FLOPs of a stage

    def __post_init__(self) -> None:
        if self.largest < 1:
            raise ValueError(f"largest must be a size >= 1, got {self.largest!r}")
        if self.samples < 1:
            raise ValueError(f"samples must be >= 1, got {self.samples!r}")
        if self.flops is not None and self.flops < 1:
            raise ValueError(f"flops must be >= 1 or None, got {self.flops!r}")

    def binding(self, protocol: Protocol, looks: int, following: int, flops: int) -> str | None:
        """The limit that ends a stage after a failing look, if one does.

        A stage ends before the look that would break the limit (`following` is the samples at
        it): looks do not move with the limits, so that a run extended by larger ones goes on as
        if it had had them from the start.
        """
        if looks >= protocol.test.looks:
            return "looks"
        if following > self.samples:
            return "samples"
        if self.flops is not None and flops >= self.flops:
            return "flops"
        return None


def stratified(low: int, high: int, cells: int) -> list[int]:
    """The middles of equal cells of [low, high] with `high` itself last, rounded to integers."""
    if high - low < cells:
        return list(range(low, high + 1))
    width = (high - low + 1) / cells
    return [int(low + width * (i + 0.5)) for i in range(cells - 1)] + [high]
