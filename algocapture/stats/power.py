"""Power laws: an exponent is never given without its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Exponent:
    """A fitted exponent, what the theory says of it, and the range asked of it if there is one."""

    what: str
    value: float
    low: float
    high: float
    points: int
    theory: str = ""
    bar: tuple[float, float] | None = None

    @property
    def met(self) -> bool | None:
        """Does the fitted value lie in the range? None where no range was asked for."""
        return None if self.bar is None else bool(self.bar[0] <= self.value <= self.bar[1])

    def row(self) -> dict[str, Any]:
        bar = "" if self.bar is None else f"{self.bar[0]:g} to {self.bar[1]:g}"
        met = {None: "", True: "met", False: "not met"}[self.met]
        return {
            "what": self.what,
            "exponent": round(self.value, 4),
            "low": round(self.low, 4),
            "high": round(self.high, 4),
            "points": self.points,
            "theory": self.theory,
            "bar": bar,
            "result": met,
        }


def power_law(
    x: Sequence[float],
    y: Sequence[float],
    what: str = "",
    *,
    stderr: Sequence[float] | None = None,
    theory: str = "",
    bar: tuple[float, float] | None = None,
    confidence: float = 0.95,
) -> Exponent:
    """The slope of log y against log x with Student's interval.

    With `stderr` of y the points are weighted, and the interval is the larger of what these errors
    and what the scatter about the line say: a law that does not hold widens it.
    """
    u, v = _logs("x", x), _logs("y", y)
    if len(u) != len(v) or len(u) < 3 or np.ptp(u) == 0:
        raise ValueError(f"a power law needs 3 or more points at 2 or more x, got x = {list(x)}")
    weights = np.ones_like(u)
    if stderr is not None:
        weights = 1 / np.maximum(_positive("stderr", stderr) / np.exp(v), 1e-6) ** 2
    centre = np.average(u, weights=weights)
    spread = float(np.sum(weights * (u - centre) ** 2))
    slope = float(np.sum(weights * (u - centre) * v) / spread)
    rest = v - np.average(v, weights=weights) - slope * (u - centre)
    degrees = len(u) - 2
    scatter = float(np.sum(weights * rest**2)) / degrees
    quantile = float(stats.t.ppf((1 + confidence) / 2, degrees))
    half = quantile * np.sqrt(scatter / spread)
    if stderr is not None:
        half = max(half, float(stats.norm.ppf((1 + confidence) / 2)) / np.sqrt(spread))
    return Exponent(what, slope, slope - half, slope + half, len(u), theory, bar)


def _logs(name: str, values: Sequence[float]) -> np.ndarray:
    return np.log(_positive(name, values))


def _positive(name: str, values: Sequence[float]) -> np.ndarray:
    held = np.asarray(values, dtype=np.float64)
    if not (np.isfinite(held).all() and (held > 0).all()):
        raise ValueError(f"{name} = {list(values)}: a power law needs finite numbers > 0")
    return held
