"""The verdict: an outcome with its evidence, the advice, and one sentence."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal

Outcome = Literal["captured", "not captured", "undecided"]
Interval = tuple[float, float]


@dataclass(frozen=True)
class SeedFit:
    """One seed's own exponent, from its curve alone."""

    seed: int | None
    exponent: float
    stderr: float
    stages: int  # passed after T0
    largest: float  # the largest size passed
    censored: bool


@dataclass(frozen=True)
class LateEarly:
    """Cost per log-size in the last third of the stages over that in the first third."""

    ratio: float
    interval: Interval
    acceleration: float  # Pr[the ratio is above 1]


@dataclass(frozen=True)
class Guide:
    """The paper's guide line C log(T/T0): least squares over all seeds."""

    cost: float  # C in samples
    relative: float  # C / P0, as in the paper's Fig. 1


@dataclass(frozen=True)
class Floor:
    """How many stages cost no more than a look can tell, and the C0 that follows."""

    share: float
    resolution: float  # samples
    bound: float  # C0 <= bound, in samples: every stage cost at most one look

    @property
    def reached(self) -> bool:
        return self.share > 0.5

    @property
    def free(self) -> bool:
        """Every stage was passed before any training: no cost, hence no exponent."""
        return self.share == 1 and self.bound == 0


@dataclass(frozen=True)
class Bounds:
    """The paper's bounds on a captured algorithm's runtime, as exponents of T."""

    kernel: Interval  # 3 + 2 max(kappa, 0), at both ends of the interval of kappa
    forward: Interval  # 2 + 2 gamma max(kappa, 0)
    gamma: float  # d_model, H ~ P^gamma


@dataclass(frozen=True)
class Verdict:
    """What the curves say at one delta. A finite range of sizes gives evidence, never proof."""

    outcome: Outcome
    exponent: float
    interval: Interval
    confidence: float
    margin: float
    advice: str
    seeds: int
    sizes: Interval  # T0 and the largest size passed by any seed
    decades: float
    noise: float  # log-sd of a stage's cost
    seed_sd: float  # sd of the exponent over seeds
    first_cost: float  # P0, geometric mean over seeds
    per_seed: tuple[SeedFit, ...]
    late_early: LateEarly | None
    guide: Guide
    laws: dict[str, float]  # growth law -> support (Akaike weight)
    floor: Floor
    bounds: Bounds
    remark: str
    caveats: tuple[str, ...]

    def sentence(self, delta: float | None = None) -> str:
        """The verdict in one sentence, for people."""
        at = "" if delta is None else f" at delta = {delta:g}"
        over = f"over sizes {self.sizes[0]:g} to {self.sizes[1]:g} and {self.seeds} seeds"
        if self.floor.free:
            return f"Captured{at}: {over} {self.remark}."
        floor = ""
        if self.floor.reached:
            floor = f", at the resolution floor (C0 <= {self.floor.bound:,.0f} samples)"
        low, high = self.interval
        remark = f" ({self.remark})" if self.remark else ""
        return (
            f"{self.outcome.capitalize()}{at}{floor}: {over} the adaptation exponent is "
            f"{_minus(self.exponent)} ({self.confidence:.0%} interval {_minus(low)} to "
            f"{_minus(high)}; margin {self.margin:g}){remark}."
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; a number that is not finite becomes null."""
        data: dict[str, Any] = _plain(dataclasses.asdict(self))
        data["floor"]["reached"] = self.floor.reached
        return data


def _minus(value: float) -> str:
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "\u2212")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
