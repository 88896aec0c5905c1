"""What stands beside the exponent: late over early cost, rival laws, the guide, the floor."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from algocapture.stats.curve import Curve
from algocapture.stats.growth import LAWS, law_shape, log_shape
from algocapture.stats.hierarchy import SEED_SDS, Mixture, SeedFits, Stages, pool
from algocapture.stats.sequential import Floats
from algocapture.stats.verdict import Bounds, Floor, Guide, LateEarly

FORWARD_GAMMA = 5.0  # the paper's d_model, H ~ P^gamma


def late_over_early(
    seeds: Sequence[Stages], posterior: Mixture, confidence: float
) -> LateEarly | None:
    """Ratio of costs per log-size, last third over first third, over seeds.

    It assumes no law of growth, so that log-squared growth, whose exponent is 0 in the limit,
    shows as a ratio above 1.
    """
    means, variances = [], []
    for s in seeds:
        y = (s.middle - log_shape(s.curve, np.zeros(())))[s.points]
        third = len(y) // 3
        if third >= 1:
            means.append(y[-third:].mean() - y[:third].mean())
            variances.append(2 * posterior.noise**2 / third)
    if len(means) < 2:
        return None
    # Between seeds the log-ratio varies by tau times the distance of the two thirds in u.
    distance = float(np.mean([2 / 3 * s.curve.log_sizes()[-1] for s in seeds]))
    one = np.zeros((len(means), 1))
    fits = SeedFits(np.ones(1), one, np.array(means)[:, None], np.array(variances)[:, None])
    mixture = pool(fits, SEED_SDS * distance)
    low, high = mixture.interval(confidence)
    return LateEarly(
        ratio=math.exp(mixture.centre),
        interval=(math.exp(low), math.exp(high)),
        acceleration=1 - mixture.below(0.0),
    )


def support(seeds: Sequence[Stages], posterior: Mixture) -> dict[str, float]:
    """Akaike weights of the growth laws, on the stages whose cost is known.

    Residuals have the posterior's stage noise and the spread of slopes over seeds in every law,
    so that a law is not favoured for absorbing the seeds' differences; each seed has its own c.
    """
    scores = dict.fromkeys(LAWS, 0.0) | {"bounded": 2.0, "power": 2.0}  # these have kappa besides
    known = [s for s in seeds if s.points.sum() >= 2]
    if not known:
        return dict.fromkeys(LAWS, 1 / len(LAWS))
    for s in known:
        whiten = _whitener(s, posterior)
        for law in LAWS:
            shape = law_shape(s.curve, law, posterior.centre)
            residual = whiten @ (s.middle - shape)[s.points]
            scores[law] += float(residual @ residual)
    best = min(scores.values())
    weights = {law: math.exp(-(score - best) / 2) for law, score in scores.items()}
    return {law: weight / sum(weights.values()) for law, weight in weights.items()}


def _whitener(s: Stages, posterior: Mixture) -> Floats:
    """A with A^T A = the inverse covariance of a seed's residuals with c projected out."""
    slope = np.ptp(log_shape(s.curve, np.array([-0.5, 0.5])), axis=0)[s.points]
    covariance = posterior.noise**2 * np.eye(len(slope))
    covariance += posterior.seed_sd**2 * np.outer(slope, slope)
    root = np.linalg.inv(np.linalg.cholesky(covariance))
    ones = root.sum(axis=1)
    out: Floats = root - np.outer(ones, ones @ root) / (ones @ ones)
    return out


def guide(curves: Sequence[Curve]) -> Guide:
    """Least squares of P - P0 = C log(T/T0), as drawn in the paper, on the passed stages."""
    u = [c.log_sizes()[1 : c.passed + 1] for c in curves]
    extra = [np.array(c.spent[1 : c.passed + 1]) - c.spent[0] for c in curves]
    square = sum(float(x @ x) for x in u)
    relative = [y / c.spent[0] for y, c in zip(extra, curves, strict=True)]
    return Guide(
        cost=sum(float(x @ y) for x, y in zip(u, extra, strict=True)) / square,
        relative=sum(float(x @ y) for x, y in zip(u, relative, strict=True)) / square,
    )


def floor(curves: Sequence[Curve], resolution: float) -> Floor:
    """Stages of which only "at most one look" is known, among the passed ones."""
    at, total, widths = 0, 0, []
    for c in curves:
        low, high = (ends[: c.passed] for ends in c.costs(resolution))
        at += int((low <= 0).sum())
        total += c.passed
        widths.append(high[low <= 0] / _log_widths(c)[: c.passed][low <= 0])
    bound = float(np.concatenate(widths).max(initial=0.0))
    spent = any(c.spent[i] > c.spent[0] for c in curves for i in range(len(c.spent)))
    return Floor(at / max(total, 1), resolution if spent else 0.0, bound if spent else 0.0)


def _log_widths(curve: Curve) -> Floats:
    u = curve.log_sizes()
    return np.diff(u) if curve.cumulative else u[1:]


def bounds(interval: tuple[float, float], gamma: float = FORWARD_GAMMA) -> Bounds:
    """The exponent's interval in the paper's bounds, which take max(kappa, 0)."""
    low, high = (max(end, 0.0) for end in interval)
    return Bounds(
        kernel=(3 + 2 * low, 3 + 2 * high),
        forward=(2 + 2 * gamma * low, 2 + 2 * gamma * high),
        gamma=gamma,
    )
