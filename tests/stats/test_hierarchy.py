"""The hierarchical model against closed forms and brute-force integrals."""

import math

import numpy as np
import pytest
from scipy import integrate
from scipy import stats as scipy_stats

from algocapture.rng import Seed
from algocapture.stats import Curve
from algocapture.stats.growth import LAWS, law_shape, log_shape
from algocapture.stats.hierarchy import (
    KNOWN,
    SEED_SCALE,
    TOTALS,
    WIDE,
    SeedFits,
    _first_fit,
    _log_likelihood,
    fit,
    fit_seeds,
    pool,
    stages_of,
)
from algocapture.stats.simulate import World, simulate_curves

SIZES = [10.0, 13.0, 19.0, 25.0]  # uneven steps


@pytest.mark.parametrize("kappa", [-2.0, -1e-9, 0.0, 0.004, 0.7, 3.0])
@pytest.mark.parametrize("cumulative", [True, False])
def test_expected_costs_against_quadrature(kappa, cumulative):
    curve = Curve(SIZES, [1.0] * 4, cumulative=cumulative)
    u = curve.log_sizes()
    starts = u[:-1] if cumulative else 0 * u[:-1]
    truth = [
        integrate.quad(lambda x: math.exp(kappa * x), a, b)[0]
        for a, b in zip(starts, u[1:], strict=True)
    ]
    assert np.exp(log_shape(curve, np.array(kappa))) == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("law", LAWS)
def test_laws_sum_to_their_totals(law):
    u = Curve(SIZES, [1.0] * 4).log_sizes()
    kappa = -0.5 if law == "bounded" else 0.5
    totals = {
        "bounded": -np.expm1(kappa * u),
        "log": u,
        "log squared": u**2,
        "power": np.expm1(kappa * u),
        "linear": np.expm1(u),
    }
    steps = np.cumsum(np.exp(law_shape(Curve(SIZES, [1.0] * 4), law, kappa)))
    whole = np.exp(law_shape(Curve(SIZES, [1.0] * 4, cumulative=False), law, kappa))
    assert steps / steps[-1] == pytest.approx(totals[law][1:] / totals[law][-1])
    assert whole / whole[-1] == pytest.approx(totals[law][1:] / totals[law][-1])


def test_without_censoring_a_seed_is_a_regression():
    g = Seed(4).child("test_hierarchy").numpy()
    sizes = 10 * 1.2 ** np.arange(16)
    cost = np.exp(5 + 0.3 * np.arange(15) * math.log(1.2) + 0.4 * g.standard_normal(15))
    curve = Curve(sizes, np.concatenate([[1e3], 1e3 + np.cumsum(cost)]))
    fits = fit_seeds([stages_of(curve, 1.0)])
    line = scipy_stats.linregress(np.arange(15) * math.log(1.2), np.log(cost))
    # the prior of the cost's log, N(., 3^2), moves the slope by about 1% of its error
    assert fits.mean[0] == pytest.approx(line.slope, abs=0.02 * line.stderr)
    ratio = fits.noise / np.sqrt(
        np.mean((np.log(cost) - line.intercept - line.slope * np.arange(15) * math.log(1.2)) ** 2)
        * 15
        / 13
    )
    assert np.sqrt(fits.variance[0]) == pytest.approx(ratio * line.stderr, rel=0.01)


@pytest.mark.parametrize("kind", ["free", "censored", "wide"])
def test_intervals_against_a_double_integral(kind):
    sizes, sigma = [10.0, 15.0, 22.0, 33.0, 50.0], 0.45
    spent = [1000.0, 1080.0, 1170.0, 1250.0, 1400.0]
    if kind == "free":
        spent[1:] = [1080.0, 1080.0, 1160.0, 1310.0]
    low = None if kind != "wide" else [900.0, 1030.0, 1100.0, 1190.0, 1290.0]
    curve = Curve(sizes, spent, spent_low=low, censored=kind == "censored")
    stages = stages_of(curve, 40.0)
    fits = fit_seeds([stages])
    at = int(np.argmin(np.abs(fits.noise - sigma)))
    sigma, common = fits.noise[at], _first_fit(stages)[1]
    a, kappa = np.linspace(common - 8, common + 8, 401), np.linspace(-8, 8, 401)
    log_l = np.zeros((len(kappa), len(a))) - 0.5 * ((a - common) / WIDE) ** 2
    for i, shape in enumerate(log_shape(curve, kappa).T):
        z = [(end - a - shape[:, None]) / sigma for end in (stages.low[i], stages.high[i])]
        if stages.high[i] == stages.low[i]:
            log_l += scipy_stats.norm.logpdf(z[0])
        else:
            log_l += np.log(np.maximum(np.diff(scipy_stats.norm.cdf(z), axis=0)[0], 1e-300))
    weight = np.exp(log_l - log_l.max()).sum(axis=1)
    weight /= weight.sum()
    mean = weight @ kappa
    assert fits.mean[0, at] == pytest.approx(mean, abs=0.02)
    assert fits.variance[0, at] == pytest.approx(weight @ (kappa - mean) ** 2, rel=0.03)


def test_pooling_known_variances_is_the_weighted_mean():
    mean, variance = np.array([[0.1], [0.4], [0.2]]), np.array([[0.01], [0.04], [0.02]])
    fits = SeedFits(np.ones(1), np.zeros((3, 1)), mean, variance)
    posterior = pool(fits, np.array([0.1]), TOTALS[:0])
    weight = 1 / (variance + 0.01)
    assert posterior.centre == pytest.approx(float((weight * mean).sum() / weight.sum()))
    half = scipy_stats.norm.ppf(0.975) / math.sqrt(weight.sum())
    assert np.ptp(posterior.interval(0.95)) == pytest.approx(2 * half)


def test_pooling_over_tau_against_quadrature():
    mean, variance = np.array([[0.1], [0.5], [0.2]]), np.array([[0.01], [0.04], [0.02]])
    posterior = pool(SeedFits(np.ones(1), np.zeros((3, 1)), mean, variance))

    own, kappa = variance[:, 0], np.linspace(-3, 3, 301)[:, None]
    level = len(own) / (1 / own).sum()
    tau = np.linspace(0, 0.6, 2001)[:, None, None]
    parts = [(own + tau**2, KNOWN * scipy_stats.halfnorm.pdf(tau, scale=SEED_SCALE) * 0.6 / 2000)]
    log_v = np.linspace(-4.125, 15.875, 4001)[:, None, None]
    up = np.maximum(np.exp(log_v) - 1, 0)
    parts.append((own * np.minimum(np.exp(log_v), 1) + level * up, 20 / 4000 + 0 * log_v))
    marginal = sum(
        (
            prior[..., 0] * np.exp(-0.5 * ((mean[:, 0] - kappa) ** 2 / v + np.log(v)).sum(axis=2))
        ).sum(axis=0)
        for v, prior in parts
    )
    below = marginal[:150].sum() + marginal[150] / 2
    assert posterior.below(0.0) == pytest.approx(below / marginal.sum(), abs=0.002)


@pytest.mark.parametrize("seeds", [3, 5])
def test_spread_of_any_size_alone_gives_the_t_interval(seeds, monkeypatch):
    # A density 1/v over all totals v, equal own errors: Student's t, whatever the own errors are.
    g = Seed(4).child("student", seeds).numpy()
    for scatter in (0.5, 1.0, 4.0):
        mean = g.standard_normal((seeds, 1))
        mean *= 0.1 * scatter / mean.std(ddof=1)
        fits = SeedFits(np.ones(1), np.zeros_like(mean), mean, np.full_like(mean, 0.01))
        monkeypatch.setattr("algocapture.stats.hierarchy.KNOWN", 0.0)
        low, high = pool(fits, totals=np.arange(-12, 20, 0.25)).interval(0.95)
        half = scipy_stats.t.ppf(0.975, seeds - 1) * mean.std(ddof=1) / math.sqrt(seeds)
        assert (high - low) / 2 == pytest.approx(half, rel=0.01)
        assert (high + low) / 2 == pytest.approx(mean.mean(), abs=0.01 * half)


def test_noise_and_seed_spread_are_recovered():
    world = World(seeds=30, stages=25, noise=0.5, seed_sd=0.3, censored=0.0, cost=300)
    curves = simulate_curves(world, Seed(4).child("recovered").numpy())
    posterior = pool(fit_seeds([stages_of(c, 1.0) for c in curves]))
    assert posterior.noise == pytest.approx(0.5, rel=0.1)
    assert posterior.seed_sd == pytest.approx(0.3, rel=0.4)


@pytest.mark.parametrize("around", [(0.0, 0.1), (0.8, 0.02)])
def test_a_normal_likelihood_does_not_depend_on_where_it_is_matched(around):
    curves = simulate_curves(World(seeds=3, censored=0.0, cost=300), Seed(4).child("ep").numpy())
    seeds = [stages_of(c, 1.0) for c in curves]
    one, two = fit_seeds(seeds), fit_seeds(seeds, around)
    assert two.mean == pytest.approx(one.mean, abs=1e-4)
    assert two.variance == pytest.approx(one.variance, rel=1e-4)
    shift = two.evidence - one.evidence  # a common constant
    assert shift == pytest.approx(np.full_like(shift, shift[0, 0]), abs=1e-3)


@pytest.mark.parametrize("name", ["one", "two", "three"])
def test_skewed_seeds_against_an_integral_over_every_exponent(name):
    world = World(kappa=-0.3, seeds=4, stages=15, cumulative=False, censored=0.0, cost=300)
    curves = simulate_curves(world, Seed(4).child("skewed", name).numpy())
    seeds = [stages_of(c, 1.0) for c in curves]
    fits, posterior = fit(seeds)
    at, tau = int(np.argmin(np.abs(fits.noise - posterior.noise))), 0.1
    parts = (part[:, at : at + 1] for part in (fits.evidence, fits.mean, fits.variance))
    ours = pool(SeedFits(fits.noise[at : at + 1], *parts), np.array([tau]), TOTALS[:0])
    grid = np.linspace(-6, 3, 1801)
    common = float(np.mean([_first_fit(s)[1] for s in seeds]))
    log_post = np.zeros_like(grid)
    for s in seeds:
        own = np.exp(_log_likelihood(s, grid, fits.noise[at : at + 1], common)[0])
        kernel = scipy_stats.norm.pdf(grid[:, None], grid, tau)
        log_post += np.log(kernel @ (own / own.max()) + 1e-300)
    weight = np.exp(log_post - log_post.max())
    cumulative = np.cumsum(weight) / weight.sum()
    for q, slack in ((0.025, 0.1), (0.5, 0.06), (0.975, 0.08)):  # of the interval's length
        truth = grid[np.searchsorted(cumulative, q)]
        assert ours.quantile(q) == pytest.approx(truth, abs=slack * np.ptp(ours.interval(0.95)))
