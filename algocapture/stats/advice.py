"""What would make the verdict surer: whichever is binding, computed from the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from algocapture.stats.curve import Curve
from algocapture.stats.hierarchy import Mixture
from algocapture.stats.sequential import Floats
from algocapture.stats.verdict import Floor, Interval, Outcome

WIDEST = 2.5  # times the present log-range: the most that is advised
MOST_SEEDS = 5  # times the present number of seeds
CLOSE = 0.02  # an estimate this near the margin stays undecided


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
    """The cheapest mix of more seeds and a wider range that would do.

    The half-width goes as t sqrt((own / stretch^3 + tau^2) / seeds): a seed's own variance falls
    with the cube of its log-range. The price goes as seeds times stretch.
    """
    if need < CLOSE:
        return (
            f"The exponent lies at the margin {now.margin:g} itself: no affordable number of seeds "
            "decides. Widen the range of sizes, or say beforehand which exponent matters to you."
        )
    count = len(now.curves)
    own, between = float(now.variances.mean()), now.posterior.seed_sd**2
    scale = have / (_student(count) * math.sqrt((own + between) / count))
    best = (math.inf, count, 1.0)
    for seeds in range(count, MOST_SEEDS * count + 1):
        unsure = (
            1 + (scale - 1) * count / seeds
        )  # what is not known about tau, less with more seeds
        left = seeds * (need / unsure / _student(seeds)) ** 2 - between  # allowed own variance
        stretch = max((own / left) ** (1 / 3), 1.0) if left > 0 else math.inf
        if stretch <= WIDEST:
            best = min(best, (seeds * stretch, seeds, stretch))
    price, seeds, stretch = best
    if not math.isfinite(price):
        what = "More seeds" if between > own else "A wider range and more seeds"
        return (
            f"{what}: the interval is {have / need:.1f} times too wide to decide, and even "
            f"{MOST_SEEDS * count} seeds would not do if the estimate stays."
        )
    if stretch < 1.02:
        seeds = max(seeds, count + 1)
    more = f"about {seeds} seeds instead of {count}"
    wide = f"sizes up to about {_size(now, stretch):,.0f}"
    end = "would tell the exponent from the margin if the estimate stays."
    if stretch < 1.02:
        return f"More seeds: {more} {end}"
    if seeds == count:
        return f"A wider range: {wide} {end}"
    return f"More seeds and a wider range: {more} and {wide} {end}"


def _student(seeds: int) -> float:
    """Between Student's t over seeds and the normal: own variances are known better than tau."""
    return float(stdtrit(2 * (seeds - 1), 0.975))


def _size(now: Situation, stretch: float) -> float:
    span = max(c.log_sizes()[-1] for c in now.curves)
    return now.curves[0].sizes[0] * math.exp(span * stretch)
