"""What would make the verdict surer: whichever is binding, computed from the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from algocapture.stats.curve import Curve
from algocapture.stats.hierarchy import Mixture
from algocapture.stats.sequential import Floats
from algocapture.stats.verdict import Floor, Interval, Outcome

FARTHEST_RANGE = 4.0  # times the present log-range: beyond that, more seeds are the better advice


@dataclass(frozen=True, eq=False)
class Situation:
    """All that advice depends on."""

    outcome: Outcome
    exponent: float
    interval: Interval
    margin: float
    curves: Sequence[Curve]
    variances: Floats  # of each seed's own exponent
    posterior: Mixture
    floor: Floor


def advise(now: Situation) -> str:
    """One recommendation with its size; a decided verdict is told what it still lacks."""
    if now.outcome != "undecided":
        return (
            "Decided at this delta. The definition asks for every sufficiently small delta: judge "
            "a second, smaller delta, and repeat with another growth factor of sizes."
        )
    if now.floor.reached:
        return (
            f"A finer look: {now.floor.share:.0%} of the stages cost no more than one look "
            f"({now.floor.resolution:,.0f} samples) can tell. Use smaller batches, or a larger "
            "growth factor so that a stage costs several looks."
        )
    low, high = now.interval
    if low > 0 and high < now.margin:
        return (
            f"The exponent is positive and below the margin {now.margin:g}: more seeds will only "
            "confirm that. A wider range of sizes tells whether the cost keeps accelerating."
        )
    need, have = _needed(now), (high - low) / 2
    budget = _budget(now, need, have)
    if budget:
        return budget
    return _seeds_or_range(now, need, have)


def _needed(now: Situation) -> float:
    """The half-width at which the interval would decide, were the estimate to stay."""
    if now.exponent >= now.margin:
        return now.exponent - now.margin
    return now.margin - now.exponent


def _budget(now: Situation, need: float, have: float) -> str:
    """Curves cut short by a budget: would the interval decide if they were as long as the rest?"""
    cut = [i for i, c in enumerate(now.curves) if c.censored]
    if not cut:
        return ""
    best = float(now.variances.min())
    full = now.variances.copy()
    full[cut] = np.minimum(full[cut], best)
    gain = math.sqrt(_variance(now, now.variances) / _variance(now, full))
    if len(cut) <= len(now.curves) / 2 and have / gain > need:
        return ""
    at = min(now.curves[i].sizes[-1] for i in cut)
    return (
        f"A larger budget: {len(cut)} of {len(now.curves)} seeds ended in a stage they did not "
        f"pass, the first at size {at:g}."
    )


def _variance(now: Situation, variances: Floats) -> float:
    return float(1 / (1 / (variances + now.posterior.seed_sd**2)).sum())


def _seeds_or_range(now: Situation, need: float, have: float) -> str:
    """The cheaper of more seeds (variance ~ 1/S) and a wider range (own variance ~ 1/range^3)."""
    if need < 0.02:
        return (
            f"The exponent lies at the margin {now.margin:g} itself: no affordable number of seeds "
            "decides. Widen the range of sizes, or say beforehand which exponent matters to you."
        )
    count = len(now.curves)
    more = max(math.ceil(count * (have / need) ** 2), count + 1)
    within, between = float(now.variances.mean()), now.posterior.seed_sd**2
    target = (within + between) * (need / have) ** 2 - between
    span = max(c.log_sizes()[-1] for c in now.curves)
    stretch = (within / target) ** (1 / 3) if target > 0 else math.inf
    seeds = f"about {more} seeds instead of {count}"
    if stretch > FARTHEST_RANGE:
        return f"More seeds: {seeds} would decide if the estimate stays."
    size = now.curves[0].sizes[0] * math.exp(span * stretch)
    wide = f"sizes up to about {size:,.0f}"
    if stretch <= more / count:
        return f"A wider range: {wide} would decide if the estimate stays (or {seeds})."
    return f"More seeds: {seeds} would decide if the estimate stays (or {wide})."
