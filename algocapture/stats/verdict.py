"""The verdict: an outcome with its evidence, the advice, and one sentence."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal

Outcome = Literal["captured", "not captured", "undecided"]
Interval = tuple[float, float]
UNREFUTED = 0.05  # a law with more support than this is still in question


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
        remark = f": {self.remark}" if self.remark else ""
        return (
            f"{self.outcome.capitalize()}{at}{floor}: {over} the adaptation exponent is "
            f"{_minus(self.exponent)} ({100 * self.confidence:g}% interval {_minus(low)} to "
            f"{_minus(high)}; margin {self.margin:g}){remark}."
        )

    def beside(self) -> list[str]:
        """What stands beside the outcome: acceleration, rival laws, the paper's bounds, limits."""
        lines = []
        if (late := self.late_early) is not None:
            low, high = late.interval
            lines.append(
                f"cost per log-size, late over early: {late.ratio:.2f} ({low:.2f} to {high:.2f}); "
                f"it grows with probability {late.acceleration:.2f}"
            )
        if not self.floor.free:
            held = sorted(self.laws.items(), key=lambda item: -item[1])
            named = [f"{law} {weight:.2f}" for law, weight in held if weight >= 0.005]
            lines.append(f"support of growth laws: {', '.join(named)}")
        kernel, forward = (power_of_t(ends) for ends in (self.bounds.kernel, self.bounds.forward))
        lines.append(f"the paper's bounds on its runtime: kernel {kernel}, forward pass {forward}")
        lines.append(self.unsaid)
        return lines

    @property
    def unsaid(self) -> str:
        """What this evidence cannot say: beyond its sizes, below its delta, between its laws."""
        said = f"nothing is said about sizes above {self.sizes[1]:g} or smaller errors"
        held = [law for law, weight in self.laws.items() if weight > UNREFUTED]
        if len(held) > 1 and not self.floor.free:
            said += f"; over {self.decades:.2f} decades {_and(held)} growth are not told apart"
        return said

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; a number that is not finite becomes null."""
        data: dict[str, Any] = _plain(dataclasses.asdict(self))
        data["floor"]["reached"] = self.floor.reached
        data["unsaid"] = self.unsaid
        return data


def power_of_t(exponents: Interval) -> str:
    """T^3, or T^(3.1 to 3.8)."""
    low, high = (f"{end:.2f}".rstrip("0").rstrip(".") for end in exponents)
    return f"T^{low}" if low == high else f"T^({low} to {high})"


def _and(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]])


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
