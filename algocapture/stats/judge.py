"""From curves to a verdict. Pure: reads no files; the thresholds are arguments, set beforehand."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real

import numpy as np

from algocapture.stats import evidence, hierarchy
from algocapture.stats.advice import Situation, advise
from algocapture.stats.curve import Curve, resolution
from algocapture.stats.hierarchy import Mixture, SeedFits, Stages, stages_of
from algocapture.stats.verdict import Floor, Interval, Outcome, SeedFit, Verdict


@dataclass(frozen=True)
class Facts:
    """What the curves cannot say about themselves, to be stated with the verdict."""

    delta: float | None = None
    baselines: Mapping[str, float] = field(default_factory=dict)  # error at the largest size
    first_baselines: Mapping[str, float] = field(default_factory=dict)  # error at T0
    constant_batch: bool = True


def judge(
    curves: Sequence[Curve],
    margin: float = 0.25,
    confidence: float = 0.95,
    facts: Facts | None = None,
) -> Verdict:
    """Did the model capture the task, as far as these seeds can tell?

    `captured` if the exponent's interval lies below the margin and not wholly above 0,
    `not captured` if it lies above the margin, else `undecided`.
    """
    kept, caveats = _usable(curves, margin, confidence)
    seeds, floor, fits, posterior = fit(kept)
    centre, interval = posterior.centre, posterior.interval(confidence)
    if floor.free:  # no cost at any size: nothing grows
        centre, interval = -math.inf, (-math.inf, -math.inf)
    outcome, remark = decide(interval, margin, floor)
    means, variances = _own(fits, posterior)
    now = Situation(outcome, centre, interval, margin, kept, variances, posterior, floor)
    sizes = (kept[0].sizes[0], max(c.sizes[c.passed] for c in kept))
    return Verdict(
        outcome=outcome,
        exponent=centre,
        interval=interval,
        confidence=confidence,
        margin=margin,
        advice=advise(now),
        seeds=len(kept),
        sizes=sizes,
        decades=math.log10(sizes[1] / sizes[0]),
        noise=posterior.noise,
        seed_sd=posterior.seed_sd,
        first_cost=float(np.exp(np.mean([math.log(c.spent[0]) for c in kept]))),
        per_seed=tuple(
            SeedFit(c.seed, float(m), float(v) ** 0.5, c.passed, c.sizes[c.passed], c.censored)
            for c, m, v in zip(kept, means, variances, strict=True)
        ),
        late_early=evidence.late_over_early(seeds, posterior, confidence),
        guide=evidence.guide(kept),
        laws=evidence.support(seeds, posterior),
        floor=floor,
        bounds=evidence.bounds(interval),
        remark=remark,
        caveats=(*caveats, *_caveats(kept, sizes, floor, facts or Facts())),
    )


def fit(curves: Sequence[Curve]) -> tuple[list[Stages], Floor, SeedFits, Mixture]:
    """The exponent's posterior, and what it was made from."""
    step = resolution(curves)
    floor = evidence.floor(curves, step)
    seeds = [stages_of(c, step, cautious=floor.reached) for c in curves]
    return seeds, floor, *hierarchy.fit(seeds)


def decide(interval: Interval, margin: float, floor: Floor) -> tuple[Outcome, str]:
    """The outcome that an interval of the exponent means, and a remark on it."""
    low, high = interval
    if floor.free:
        return "captured", "every size was passed without any adaptation"
    if low > margin:
        return "not captured", ""
    if high < margin and low <= 0:
        return "captured", ""
    if high < margin:
        return "undecided", "slower than the margin, faster than log"
    return "undecided", ""


def _usable(
    curves: Sequence[Curve], margin: float, confidence: float
) -> tuple[list[Curve], list[str]]:
    """The curves with something to say; those that never passed T0 are named, not dropped."""
    if not (isinstance(confidence, Real) and 0 < confidence < 1):
        raise ValueError(f"confidence = {confidence!r}: a probability strictly between 0 and 1")
    if not (isinstance(margin, Real) and 0 < margin < math.inf):
        raise ValueError(f"margin = {margin!r}: a positive exponent")
    if not isinstance(curves, Sequence) or not all(isinstance(c, Curve) for c in curves):
        raise ValueError(f"curves = {reprlib.repr(curves)}: a list of Curve, one for each seed")
    if not curves:
        raise ValueError("no curves: judge needs the curves of at least two seeds")
    if len(curves) == 1:
        raise ValueError("one seed cannot show how seeds vary: judge needs at least two curves")
    if len({c.cumulative for c in curves}) > 1:
        raise ValueError("some curves are cumulative and some are not: judge them apart")
    if len({c.sizes[0] for c in curves}) > 1:
        raise ValueError(f"curves begin at different T0: {sorted({c.sizes[0] for c in curves})}")
    kept = [c for c in curves if len(c.sizes) > 1]
    if not kept:
        raise ValueError("every curve has one size: nothing after T0, so there is no growth to see")
    if not any(c.passed for c in kept):
        raise ValueError("every curve is censored in its first stage after T0: no stage was passed")
    if len(kept) == 1:
        raise ValueError("only one of the curves goes beyond T0: judge needs at least two")
    if sum(c.passed for c in kept) < 3:
        raise ValueError("fewer than three stages were passed after T0 by all seeds together")
    missing = len(curves) - len(kept)
    return kept, [f"{missing} of {len(curves)} seeds have no stage after T0."] if missing else []


def _own(fits: SeedFits, posterior: Mixture) -> tuple[np.ndarray, np.ndarray]:
    """Each seed's own estimate and variance at the posterior's noise."""
    at = int(np.argmin(np.abs(np.log(fits.noise / posterior.noise))))
    return fits.mean[:, at], fits.variance[:, at]


def _caveats(curves: Sequence[Curve], sizes: Interval, floor: Floor, facts: Facts) -> list[str]:
    out = []
    if floor.reached and not floor.free:
        out.append(
            f"{floor.share:.0%} of the stages cost at most one look: what is hidden below it was "
            "taken at its upper end at the larger sizes, so the interval says only what is seen."
        )
    if len(curves) < 3:
        out.append(f"Only {len(curves)} seeds: the spread over seeds is hardly known.")
    decades = math.log10(sizes[1] / sizes[0])
    if decades < 1:
        out.append(f"Less than one decade of sizes ({decades:.2f}).")
    cut = sum(c.censored for c in curves)
    if cut:
        out.append(f"{cut} of {len(curves)} seeds ended in a stage that they did not pass.")
    out += _shortcuts(facts)
    if not facts.constant_batch:
        out.append("The batch, in samples, was not constant over sizes: P(T) may bend by itself.")
    if any(c.spent_low is None for c in curves):
        out.append("The last failing looks are not given: costs are taken as exact.")
    return out


def _shortcuts(facts: Facts) -> list[str]:
    """Cheap predictors that are good enough at the largest size, or at T0 only."""
    if facts.delta is None:
        return []
    last, first = (
        {name: error for name, error in errors.items() if error < facts.delta}
        for errors in (facts.baselines, facts.first_baselines)
    )
    return [
        f"The shortcut {name!r} already meets delta = {facts.delta:g} at the largest size "
        f"(error {error:.3g}): passing there proves no algorithm."
        for name, error in last.items()
    ] + [
        f"The shortcut {name!r} meets delta = {facts.delta:g} at T0 (error {error:.3g}): the first "
        "samples may have bought it, and only larger sizes tell it from the algorithm."
        for name, error in first.items()
        if name not in last
    ]
