"""The exponent over seeds: a hierarchical model, integrated on grids.

Stage i of seed s costs log d = a_s + log_shape_i(kappa_s) + sigma noise, known to lie in an
interval (a look's resolution; (0, resolution]; above a budget where censored), with
kappa_s ~ N(kappa, tau^2). Priors: flat in kappa and log sigma, a_s ~ N(common, WIDE^2). Three to
five seeds alone cannot tell tau, so two views of it are averaged: like the spreads of real runs,
or of any size, even smaller than the seeds' own errors allow. Derived in docs/theory/verdict.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri

from algocapture.stats.curve import Curve
from algocapture.stats.growth import log_shape
from algocapture.stats.sequential import Floats

NARROW = 0.5  # log-width below which an interval is a point with extra variance width^2/12
WIDE = 3.0  # log-sd of the seeds' costs c: by e^3 either way
SEED_SCALE = 0.1  # tau like that of real runs (0.05 to 0.1): half-normal
SEED_SDS: Floats = SEED_SCALE * ndtri(0.5 + (np.arange(24) + 0.5) / 48)  # its quantiles
STEP = 0.25
TOTALS: Floats = np.arange(-4, 16, STEP)  # log((own + tau^2) / own), if of any size: flat
KNOWN = 3.0  # weight of the first view, in e-folds of the second
NOISES: Floats = np.linspace(-1, 1, 9)  # grid of log sigma around a first fit
LEAST_NOISE = 0.02
FARTHEST = 30.0  # exponents are looked for in [-30, 30]
GRID = np.linspace(-1, 1, 61)
NODES, MANY_NODES = np.linspace(-5, 5, 21), np.linspace(-4, 4, 81)


@dataclass(frozen=True, eq=False)
class Stages:
    """The data of one seed: log-costs known as points or as intervals, all finite or infinite."""

    curve: Curve
    low: Floats  # log of the lower end, -inf if 0
    high: Floats  # log of the upper end, inf if censored

    @property
    def points(self) -> NDArray[np.bool_]:
        """Which stages are known well enough to be points (a mask)."""
        return (self.high - self.low) < NARROW

    @property
    def middle(self) -> Floats:
        """A value for each stage, for first fits: half the bound, or a third above it."""
        low = np.where(np.isfinite(self.low), self.low, self.high - 2 * math.log(2))
        high = np.where(np.isfinite(self.high), self.high, low + 2 * math.log(1.3))
        known = np.isfinite(low)  # a budget that ended before a look says nothing
        out = np.zeros(len(low))
        out[known] = (low[known] + high[known]) / 2
        out[~known] = out[known].mean() if known.any() else 0.0
        return out


@dataclass(frozen=True, eq=False)
class SeedFits:
    """Per seed and noise level: evidence, and mean and variance of the seed's exponent."""

    noise: Floats  # (noises,)
    evidence: Floats  # (seeds, noises), log
    mean: Floats
    variance: Floats


@dataclass(frozen=True, eq=False)
class Mixture:
    """The posterior of a quantity common to all seeds: a mixture of normals."""

    weight: Floats
    mean: Floats
    sd: Floats
    noise: float  # posterior mean of sigma
    seed_sd: float  # posterior median of tau

    @property
    def centre(self) -> float:
        return self.quantile(0.5)

    def below(self, value: float) -> float:
        """Pr[quantity <= value]."""
        return float(self.weight @ ndtr((value - self.mean) / self.sd))

    def quantile(self, q: float) -> float:
        low = float((self.mean - 40 * self.sd).min())
        high = float((self.mean + 40 * self.sd).max())
        for _ in range(45):
            middle = (low + high) / 2
            low, high = (middle, high) if self.below(middle) < q else (low, middle)
        return (low + high) / 2

    def interval(self, confidence: float) -> tuple[float, float]:
        tail = (1 - confidence) / 2
        return self.quantile(tail), self.quantile(1 - tail)


def stages_of(curve: Curve, resolution: float, cautious: bool = False) -> Stages:
    """A curve's data. `cautious` takes late costs that no look could tell from nothing at their
    upper end: hidden below the resolution, they must not speak for capture."""
    low, high = curve.costs(resolution)
    if cautious:
        u = curve.log_sizes()
        hidden = (low <= 0) & np.isfinite(high) & (u[1:] > u[-1] / 2)
        # A whole-interval cost grows with u at exponent 0: all at the upper end would be bounded.
        share = 1.0 if curve.cumulative else (u[1:] / u[-1])[hidden]
        low[hidden] = high[hidden] = share * high[hidden]
    with np.errstate(divide="ignore"):
        return Stages(curve, np.log(low), np.log(high))


def fit(seeds: Sequence[Stages]) -> tuple[SeedFits, Mixture]:
    """The exponent's posterior. Fitted twice: a seed's likelihood can be skewed (whole-interval
    curves, censoring), and its normal stand-in must hold where the other seeds put the exponent.
    """
    alone = fit_seeds(seeds)
    first = pool(alone)
    low, high = first.interval(0.95)
    region = ((high - low) / 2) ** 2 + 4 * max(first.seed_sd, SEED_SCALE) ** 2
    fits = _kept(alone, fit_seeds(seeds, (first.centre, region)))
    return fits, pool(fits)


def _kept(alone: SeedFits, around: SeedFits) -> SeedFits:
    """The second fit, but the first for a seed that hardly tells its exponent there: what is left
    of its likelihood next to the others' is no normal, and may lie anywhere."""
    holds = (np.abs(around.mean) <= FARTHEST) & (around.variance <= FARTHEST**2)
    parts = [
        np.where(holds, getattr(around, name), getattr(alone, name))
        for name in ("evidence", "mean", "variance")
    ]
    return SeedFits(alone.noise, *parts)


def fit_seeds(seeds: Sequence[Stages], around: tuple[float, float] | None = None) -> SeedFits:
    """Each seed's exponent by its own likelihood, its cost c integrated out.

    The normal that stands for the likelihood has its moments, or, `around` a normal (mean,
    variance), gives the product of both its moments (one step of expectation propagation).
    """
    rough = [_first_fit(s) for s in seeds]
    noise = _noise_grid(seeds, sum(r[2] for r in rough))
    common = float(np.mean([r[1] for r in rough]))
    fits = [_fit_seed(s, r[0], noise, common, around) for s, r in zip(seeds, rough, strict=True)]
    evidence, mean, variance = (np.array(part) for part in zip(*fits, strict=True))
    return SeedFits(noise, evidence, mean, variance)


def pool(fits: SeedFits, sds: Floats = SEED_SDS, totals: Floats = TOTALS) -> Mixture:
    """The common exponent: seeds vary by tau around it. `sds` are quantiles of the tau of real
    runs; with `totals` empty nothing else is thought possible."""
    variance, tau, prior = _spreads(fits.variance, sds, totals)
    mean = fits.mean[:, :, None]
    total = (1 / variance).sum(axis=0)
    centre = (mean / variance).sum(axis=0) / total
    scatter = ((mean - centre) ** 2 / variance).sum(axis=0)
    log_weight = fits.evidence.sum(axis=0)[:, None] - 0.5 * (
        np.log(variance).sum(axis=0) + np.log(total) + scatter
    )
    weight = np.exp(log_weight - log_weight.max()) * prior
    weight /= weight.sum()
    order = tau.argsort(axis=None)
    return Mixture(
        weight=weight.ravel(),
        mean=centre.ravel(),
        sd=(1 / np.sqrt(total)).ravel(),
        noise=float(weight.sum(axis=1) @ fits.noise),
        seed_sd=float(tau.ravel()[order][np.searchsorted(weight.ravel()[order].cumsum(), 0.5)]),
    )


def _spreads(own: Floats, sds: Floats, totals: Floats) -> tuple[Floats, Floats, Floats]:
    """What each seed's estimate varies by (seeds, noises, views), the tau in it, and its prior.

    Of any size: v = own + tau^2 with density 1/v, under which a t-interval over seeds is exact.
    It goes on below own, where all own errors shrink alike (taken as too large by the model).
    """
    own = own[:, :, None]
    level, ratio = 1 / (1 / own).mean(axis=0), np.exp(totals)  # (noises, 1), (totals,)
    free = level * np.maximum(ratio - 1, 0)  # tau^2
    variance = np.concatenate([own + sds**2, own * np.minimum(ratio, 1) + free], axis=2)
    known = np.broadcast_to(sds, (len(level), len(sds)))
    prior = np.repeat([KNOWN / len(sds), STEP], [len(sds), len(totals)])
    return variance, np.concatenate([known, np.sqrt(free)], axis=1), prior


def _noise_grid(seeds: Sequence[Stages], residual: float) -> Floats:
    """Four posterior sds of log sigma either way, more where a first fit had to guess costs."""
    stages = sum(len(s.curve.sizes) - 1 for s in seeds)
    freedom = max(stages - 2 * len(seeds), 1)
    guessed = 1 - sum(int(s.points.sum()) for s in seeds) / stages
    reach = min(4 / math.sqrt(2 * freedom) + guessed, 0.8)
    return max(math.sqrt(residual / freedom), LEAST_NOISE) * np.exp(reach * NOISES)


def _first_fit(stages: Stages) -> tuple[float, float, float]:
    """Least squares of the middles: exponent, log c, residual sum of squares."""
    slope = log_shape(stages.curve, np.array([-0.5, 0.5]))
    x, y = slope[1] - slope[0], stages.middle - log_shape(stages.curve, np.zeros(()))
    x_mean, y_mean = x.mean(), y.mean()
    spread = ((x - x_mean) ** 2).sum()
    kappa = float(((x - x_mean) * (y - y_mean)).sum() / spread) if spread > 0 else 0.0
    rest = y - y_mean - kappa * (x - x_mean)
    return kappa, float(y_mean - kappa * x_mean), float((rest**2).sum())


def _fit_seed(
    stages: Stages,
    centre: float,
    noise: Floats,
    common: float,
    around: tuple[float, float] | None,
) -> tuple[Floats, Floats, Floats]:
    """Evidence, mean and variance of kappa_s per noise level, on a grid that holds its mass."""
    slope = np.ptp(log_shape(stages.curve, np.array([-0.5, 0.5])), axis=0)
    precision = max(((slope - slope.mean()) ** 2).sum(), 1e-6) / float(noise[-1]) ** 2
    if around:
        prior, own = 1 / around[1], precision
        precision = own + prior
        centre = (own * centre + prior * around[0]) / precision
    centre, reach = min(max(centre, -FARTHEST), FARTHEST), 8 / math.sqrt(precision)
    while True:
        kappa = np.clip(centre + reach * GRID, -FARTHEST, FARTHEST)
        log_l = _log_likelihood(stages, kappa, noise, common)  # (noises, kappas)
        if around:
            log_l -= 0.5 * (kappa - around[0]) ** 2 / around[1] + 0.5 * math.log(around[1])
        top = log_l.max(axis=1, keepdims=True)
        mass = np.exp(log_l - top)
        edge = mass[:, [0, -1]].max()
        if edge < 1e-5 or reach >= 2 * FARTHEST:
            break
        reach *= 2
    weight = mass * np.gradient(kappa)
    total = weight.sum(axis=1)
    mean = weight @ kappa / total
    variance = (weight * (kappa - mean[:, None]) ** 2).sum(axis=1) / total
    evidence = np.log(total) + top[:, 0]
    return _divide(evidence, mean, variance, *around) if around else (evidence, mean, variance)


def _divide(
    evidence: Floats, mean: Floats, variance: Floats, at: float, region: float
) -> tuple[Floats, Floats, Floats]:
    """The normal whose product with N(at, region) has these moments and this integral."""
    precision = np.maximum(1 / variance - 1 / region, 1e-6 / region)
    own = (mean / variance - at / region) / precision
    spread = 1 / precision + region
    return evidence + 0.5 * (np.log(spread) + (own - at) ** 2 / spread), own, 1 / precision


def _log_likelihood(stages: Stages, kappa: Floats, noise: Floats, common: float) -> Floats:
    """log of the integral over a_s of the likelihood times a_s's prior, (noises, kappas).

    Points give a Gaussian in a_s, which is integrated in closed form if there is nothing else.
    """
    points = stages.points
    shape = log_shape(stages.curve, kappa)  # (kappas, stages)
    total, centre, square, scale = _gaussian(stages, points, shape, noise, common)
    log_l = 0.5 * (scale[:, None] - square)
    if points.all():
        return log_l - 0.5 * np.log(total)
    # Intervals too: a sum over nodes, placed as if intervals with two ends were points.
    ends = np.isfinite(stages.low) & np.isfinite(stages.high)
    wide, near, _, _ = _gaussian(stages, ends, shape, noise, common)
    nodes = NODES if ends.any() else MANY_NODES
    a = near[..., None] + nodes / np.sqrt(wide)[..., None]  # (noises, kappas, nodes)
    away = -0.5 * total[..., None] * (a - centre[..., None]) ** 2
    for i in np.flatnonzero(~points):
        expected = a + shape[:, i][None, :, None]
        away += _log_between(stages.low[i], stages.high[i], expected, noise[:, None, None])
    top = away.max(axis=-1)
    spacing = (nodes[1] - nodes[0]) / np.sqrt(2 * np.pi * wide)
    return log_l + top + np.log(np.exp(away - top[..., None]).sum(axis=-1) * spacing)


def _gaussian(
    stages: Stages, at: NDArray[np.bool_], shape: Floats, noise: Floats, common: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Precision and centre in a_s of the chosen stages and the prior; the squares left over;
    the log of the stages' precisions. (noises, kappas) but for the last, (noises,)."""
    low, high = stages.low[at], stages.high[at]
    y = (low + high) / 2 - shape[:, at]
    precision = 1 / (noise[:, None] ** 2 + (high - low) ** 2 / 12)  # (noises, stages)
    total = precision.sum(axis=1)[:, None] + WIDE**-2
    centre = (precision @ y.T + common * WIDE**-2) / total
    square = precision @ (y.T**2) + common**2 * WIDE**-2 - total * centre**2
    return total, centre, square, np.log(precision).sum(axis=1)


def _log_between(low: float, high: float, mean: Floats, sd: Floats) -> Floats:
    """log Pr[low < N(mean, sd) <= high], in the tail that does not cancel."""
    if math.isinf(high):
        return np.asarray(log_ndtr((mean - low) / sd))
    if math.isinf(low):
        return np.asarray(log_ndtr((high - mean) / sd))
    upper, lower = (high - mean) / sd, (low - mean) / sd
    flip = lower > 0
    upper, lower = np.where(flip, -lower, upper), np.where(flip, -upper, lower)
    big = log_ndtr(upper)
    return np.asarray(big + np.log1p(-np.exp(np.minimum(log_ndtr(lower) - big, -1e-12))))
