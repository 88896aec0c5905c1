"""The curve P(T) of one seed, with the interval in which each stage's cost is known."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from algocapture.stats.sequential import Floats

LARGEST = 1e300  # nothing that is counted comes near; what is computed of it stays finite


@dataclass(frozen=True)
class Curve:
    """Samples spent until each size was passed. `spent[0]` is P0, at `sizes[0]` = T0.

    `spent` holds the first passing look, `spent_low` the last failing one, both counted from the
    start of the run. A stage that passed before any training costs nothing: equal neighbours.
    If `censored`, the last size was not passed and its entry is a lower bound.
    `cumulative=False` is the whole-interval protocol: each entry is P0 plus what one adaptation
    from the base model to that size took, so that neighbours are independent and may fall.
    """

    sizes: Sequence[float]
    spent: Sequence[float]
    censored: bool = False
    spent_low: Sequence[float] | None = None
    cumulative: bool = True
    seed: int | None = None

    def __post_init__(self) -> None:
        for name in ("sizes", "spent", "spent_low"):
            values = getattr(self, name)
            if values is not None or name != "spent_low":
                object.__setattr__(self, name, tuple(_numbers(name, values)))
        for name in ("censored", "cumulative"):
            value = getattr(self, name)
            if not isinstance(value, bool | np.bool_):
                raise ValueError(f"{name} = {value!r}: True or False")
            object.__setattr__(self, name, bool(value))
        self._check()

    def _check(self) -> None:
        sizes, spent = np.array(self.sizes), np.array(self.spent)
        if not len(sizes):
            raise ValueError("sizes is empty: a curve begins with T0")
        if len(spent) != len(sizes):
            raise ValueError(f"sizes has {len(sizes)} entries and spent {len(spent)}: one for each")
        if sizes[0] <= 0 or (np.diff(sizes) <= 0).any():
            raise ValueError(
                f"sizes = {reprlib.repr(list(self.sizes))}: must be positive and increasing"
            )
        if spent[0] <= 0:
            raise ValueError(f"spent[0] = {spent[0]}: P0 must be positive")
        if self.cumulative and (np.diff(spent) < 0).any():
            at = int(np.argmax(np.diff(spent) < 0)) + 1
            raise ValueError(
                f"spent falls from {spent[at - 1]} to {spent[at]} at size {sizes[at]}: a "
                "cumulative cost cannot; give cumulative=False for the whole-interval protocol"
            )
        if (spent < spent[0]).any():
            shown = reprlib.repr(list(self.spent))
            raise ValueError(
                f"spent = {shown}: every entry includes P0 = {spent[0]}, none is below"
            )
        if self.spent_low is not None:
            low = np.array(self.spent_low)
            if len(low) != len(sizes):
                raise ValueError(f"spent_low has {len(low)} entries and sizes {len(sizes)}")
            if (low > spent).any():
                at = int(np.argmax(low > spent))
                raise ValueError(f"spent_low[{at}] = {low[at]} is above spent[{at}] = {spent[at]}")

    @property
    def passed(self) -> int:
        """Stages passed after T0."""
        return len(self.sizes) - 1 - self.censored

    def log_sizes(self) -> Floats:
        """u = log(T / T0)."""
        return np.log(np.array(self.sizes) / self.sizes[0])

    def starts(self) -> Floats:
        """What had been spent when each stage after T0 began."""
        spent = np.array(self.spent)
        return spent[:-1] if self.cumulative else np.full(len(spent) - 1, spent[0])

    def costs(self, resolution: float) -> tuple[Floats, Floats]:
        """Each stage's cost lies in (low, high]; high is infinite where censored.

        A cost below the resolution is only known to be below it: (0, resolution].
        """
        high = np.array(self.spent[1:]) - self.starts()
        low = high.copy()
        if self.spent_low is not None:
            low = np.maximum(np.array(self.spent_low[1:]) - self.starts(), 0.0)
        nothing = high <= 0
        low[nothing], high[nothing] = 0.0, resolution
        if self.censored:
            low[-1] = max(self.spent[-1] - self.starts()[-1], 0.0)
            high[-1] = math.inf
        return low, high

    def to_json(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "sizes": list(self.sizes),
            "spent": list(self.spent),
            "spent_low": None if self.spent_low is None else list(self.spent_low),
            "censored": self.censored,
            "cumulative": self.cumulative,
        }


def resolution(curves: Sequence[Curve]) -> float:
    """The least positive cost that any curve could tell from nothing: its narrowest look."""
    steps = [np.zeros(0)]
    for c in curves:
        cost, start = np.array(c.spent[1:]) - c.starts(), c.starts()
        steps.append(cost)
        if c.spent_low is not None:
            steps.append(cost - np.maximum(np.array(c.spent_low[1:]) - start, 0.0))
    positive = np.concatenate(steps)
    positive = positive[positive > 0]
    return float(positive.min()) if positive.size else 1.0


def _numbers(name: str, values: Sequence[float]) -> list[float]:
    shown = reprlib.repr(values)
    if isinstance(values, str | bytes | Mapping | Set) or not isinstance(values, Collection):
        raise ValueError(f"{name} = {shown}: a sequence of numbers")
    held = list(values) if isinstance(values, list | tuple) else np.asarray(values).tolist()
    for at, number in enumerate(held):
        if isinstance(number, bool | np.bool_) or not isinstance(number, Real):
            raise ValueError(f"{name}[{at}] = {reprlib.repr(number)}: a number")
        if not 0 <= _float(number) < LARGEST:  # nor NaN
            raise ValueError(f"{name}[{at}] = {reprlib.repr(number)}: not in [0, {LARGEST:g})")
    return [float(number) for number in held]


def _float(number: Real) -> float:
    try:
        return float(number)
    except OverflowError:  # an integer of hundreds of digits
        return math.inf
