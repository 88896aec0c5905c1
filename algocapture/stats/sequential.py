"""The test that passes a stage: betting against "the true error is at least delta".

Each look of a stage draws fresh instances and plays the capital
    K_n = mean over theta of prod_{i<=n} (1 + theta (delta - X_i) / (1 - delta)),
which is a supermartingale from 1 whenever every X_i in [0, 1] has conditional mean >= delta,
so that Pr[K ever reaches looks/beta] <= beta/looks (Ville), whatever the law of X: coin flips
or error fractions of whole instances. docs/theory/sequential.md has the proof and the tables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from algocapture.config import register

Floats = NDArray[np.float64]
Decision = Literal["pass", "fail", "more"]

# A bet theta is the best one against coin flips whose error is (1 - theta) delta. It stays
# below 1 so that a single error never takes all of the capital.
THETAS: Floats = np.array([0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.98])
FINE: Floats = np.geomspace(0.003, 0.98, 16)  # for the interval: small errors need small bets
OPTIMISM = 2.5  # standard errors granted to a look before it is given up as hopeless
PATIENCE = 64  # instances before giving up: fewer give no standard error
CONFIDENCE = 0.95  # of `Look.interval`, over all n of the look at once
RESOLUTION = 2.0**-30  # of the interval's ends, outwards


@register
@dataclass(frozen=True)
class SequentialTest:
    """When does a stage pass? The same numbers for every size T, or P(T) would bend by itself."""

    beta: float = 0.01  # Pr[a stage is passed although its true error is >= delta], all looks
    looks: int = 200  # the largest number of looks in a stage; they spend beta equally
    chunk: int = 256  # evaluation instances drawn at a time
    maximum: int = 16_384  # evaluation instances at most per look

    def __post_init__(self) -> None:
        if not 0 < self.beta < 1:
            raise ValueError(f"beta = {self.beta!r}: a probability strictly between 0 and 1")
        for name in ("looks", "chunk", "maximum"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)!r}: an integer >= 1")

    def look(self, delta: float) -> Look:
        """A fresh look, with nothing carried over from earlier ones."""
        return Look(self, delta)


class Look:
    """One look at a model: fed with errors of fresh instances until it decides."""

    def __init__(self, test: SequentialTest, delta: float) -> None:
        if not 0 < delta < 1:
            raise ValueError(f"delta = {delta!r}: an error strictly between 0 and 1")
        self.test, self.delta = test, delta
        self.decision: Decision = "more"
        self.n = 0
        self._chunks: list[Floats] = []
        self._sum = np.zeros_like(THETAS)  # of log(1 + theta (delta - X) / (1 - delta))
        self._squares = np.zeros_like(THETAS)

    def update(self, errors: Floats) -> Decision:
        """Take the errors of some fresh instances. Their order does not matter."""
        if self.decision != "more":
            raise ValueError(f"this look has already decided {self.decision!r}: start a new one")
        errors = _checked(errors)
        logs = np.log1p(THETAS[:, None] * ((self.delta - errors) / (1 - self.delta)))
        self._sum += logs.sum(axis=1)
        self._squares += np.einsum("tn,tn->t", logs, logs)
        self._chunks.append(errors)
        self.n += errors.size
        self.decision = str(decide(self.test, self.n, self._sum, self._squares))  # type: ignore[assignment]
        return self.decision

    @property
    def wanted(self) -> int:
        """How many instances to draw next: a chunk, or what is left of the maximum."""
        return 0 if self.decision != "more" else min(self.test.chunk, self.test.maximum - self.n)

    @property
    def mean(self) -> float:
        """The observed error; NaN before the first update."""
        return math.fsum(np.concatenate(self._chunks).tolist()) / self.n if self.n else math.nan

    @property
    def evidence(self) -> float:
        """The log of the capital; the stage is passed at log(looks / beta)."""
        return float(_log_mean_exp(self._sum))

    @property
    def interval(self) -> tuple[float, float]:
        """Holds the true error with probability 95%, wherever the look stopped."""
        if not self.n:
            return (0.0, 1.0)
        return confidence_interval(np.concatenate(self._chunks), CONFIDENCE)


def decide(test: SequentialTest, n: int, sums: Floats, squares: Floats) -> NDArray[np.str_]:
    """Pass, fail or more, from the sums over instances of the log factors, per theta (last axis).

    A pass needs the capital. Giving up early costs no validity; it happens when no bet would
    reach the capital by `maximum` even with a growth OPTIMISM standard errors above the observed.
    """
    goal = math.log(test.looks / test.beta)
    left = max(test.maximum - n, 0)
    spread = np.sqrt(np.maximum(n * squares - sums * sums, 0))  # n^1.5 standard errors of the rate
    prospect = sums * (1 + left / n) + spread * (left * OPTIMISM / n**1.5)
    # The capital is below that of its best bet: when no bet gets there, neither does the mean.
    hopeless = (prospect.max(axis=-1) < goal) & (n >= PATIENCE) | (left == 0)
    passed = _log_mean_exp(sums) >= goal
    return np.where(passed, "pass", np.where(hopeless, "fail", "more"))


def next_look(batches: int, ratio: float = 1.1) -> int:
    """The number of batches since the stage began at which the look after this one comes.

    The first look is at 0; the next ones are at least one batch apart and else grow by at most
    `ratio`, so that P is known to that ratio or to one batch.
    """
    if not (ratio > 1 and batches >= 0):
        raise ValueError(f"next_look needs batches >= 0 and ratio > 1, got {batches!r}, {ratio!r}")
    return max(batches + 1, math.floor(batches * ratio * (1 + 1e-12)))


def confidence_interval(errors: Floats, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """A betting confidence interval for the mean of [0, 1] data, valid at a random stopping time.

    A candidate mean is outside if bets that the mean is lower, or higher, than it have made
    2 / (1 - confidence).
    """
    values, counts = np.unique(_checked(errors), return_counts=True)
    goal = math.log(2 / (1 - confidence))
    upper, rest = _largest(np.stack([values, 1 - values]), counts.astype(np.float64), goal)
    return (1 - float(rest), float(upper))


def _largest(values: Floats, counts: Floats, goal: float) -> Floats:
    """For each row of values, the largest mean m that bets on a lower one do not refute.

    In y = -log(1 - m) a bet's factor is 1 - theta + theta (1 - v) e^y. The log of the capital
    increases with y and is convex: Newton's method from any y ends at the root, from above.
    """
    right, n = 1 - values, counts.sum()
    low = (right @ counts + RESOLUTION) / (n + goal)  # begin near 1 - m, as a normal law has it
    low -= np.minimum(low / 2, np.sqrt(2 * goal * low * (1 - low) / (n + 8 * goal)))
    gains, kept = FINE[:, None] * right[:, None], 1 - FINE[:, None]
    farthest = -math.log(RESOLUTION / 2)  # all errors 1: nothing is won at any mean
    y, last = -np.log(low), np.inf
    while np.abs(y - last).max() > 1e-8:  # then quadratically less is left
        last = y
        won = gains * np.exp(y)[:, None, None]
        factors = kept + won
        logs = np.log(factors) @ counts
        top = logs.max(axis=1)
        shares = np.exp(logs - top[:, None])
        total = shares.sum(axis=1)
        slope = (shares * ((won / factors) @ counts)).sum(axis=1) / total
        excess = top + np.log(total / len(FINE)) - goal
        y = np.clip(y - excess / np.maximum(slope, 1e-12), 0, farthest)
    out: Floats = np.ceil(-np.expm1(-y) / RESOLUTION) * RESOLUTION
    return out


def _checked(errors: Floats) -> Floats:
    errors = np.asarray(errors, dtype=np.float64)
    if errors.ndim != 1 or not errors.size:
        raise ValueError(f"errors has shape {errors.shape}: a vector with one error per instance")
    if not (errors.min() >= 0 and errors.max() <= 1):  # NaN is neither
        worst = errors[~((errors >= 0) & (errors <= 1))][0]
        raise ValueError(f"errors holds {worst!r}: every error lies in [0, 1]")
    return errors


def _log_mean_exp(values: Floats) -> Floats:
    top = values.max(axis=-1)
    out: Floats = top + np.log(np.exp(values - top[..., None]).sum(axis=-1) / values.shape[-1])
    return out
