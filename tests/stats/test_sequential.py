"""The sequential test: validity over a stage, power, order, and bad input."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from algocapture.rng import Seed
from algocapture.stats import SequentialTest, next_look
from algocapture.stats.sequential import FINE, THETAS, confidence_interval
from algocapture.stats.simulate import _decisions, simulate_looks, simulate_stages

LOUD = SequentialTest(beta=0.3, looks=2, chunk=64, maximum=1024)  # fails often enough to count


def generator(*names):
    return Seed(4).child("test_sequential", *names).numpy()


LAWS = {  # [0, 1] errors of mean p: coin flips, half errors, fractions of few or many tokens
    "coin": lambda g, p, n: (g.random(n) < p).astype(float),
    "half": lambda g, p, n: 0.5 * (g.random(n) < 2 * p),
    "tokens": lambda g, p, n: g.binomial(20, p, n) / 20,
    "beta": lambda g, p, n: g.beta(0.3 * p, 0.3 * (1 - p), n),
    "constant": lambda g, p, n: np.full(n, p),
}


def decided(test, delta, draw):
    look = test.look(delta)
    while look.decision == "more":
        look.update(draw(look.wanted))
    return look


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_an_error_of_delta_passes_at_most_as_often_as_stated(law, delta):
    g = generator("valid", law, str(delta))
    level, looks = LOUD.beta / LOUD.looks, 600
    passes = sum(
        decided(LOUD, delta, lambda n: LAWS[law](g, delta, n)).decision == "pass"
        for _ in range(looks)
    )
    # z < 4, ten comparisons
    assert passes <= looks * level + 4 * math.sqrt(looks * level * (1 - level))


@pytest.mark.parametrize("error", [0.05, 0.055, 0.08])
def test_a_stage_that_stays_bad_is_passed_at_most_beta_often(error):
    test = SequentialTest(beta=0.05, looks=40, maximum=4096)
    stages = simulate_stages(test, 0.05, lambda _: error, 2000, generator("stage", str(error)))
    assert stages.passed.mean() <= test.beta
    assert (stages.low[~stages.passed] > 0).all()


def test_the_simulation_decides_as_the_look_does():
    g = generator("same")
    test = SequentialTest(chunk=100, maximum=1030)
    for p in (0.02, 0.08, 0.1, 0.2):
        errors = (g.random((50, test.maximum)) < p).astype(float)
        table = _decisions(test, 0.1)
        for row in errors:
            look = test.look(0.1)
            while look.decision == "more":
                at, start = math.ceil(look.n / test.chunk), look.n
                look.update(row[start : start + look.wanted])
                assert look.decision == table[at][int(row[: look.n].sum())]


@pytest.mark.parametrize(("delta", "most"), [(0.05, 2000), (0.2, 600)])
def test_half_the_error_passes_with_few_instances(delta, most):
    test = SequentialTest()
    passed, used = simulate_looks(test, delta, delta / 2, 2000, generator("power", str(delta)))
    assert passed.mean() > 0.99
    assert used.mean() < most


def test_a_hopeless_model_is_given_up_after_one_chunk():
    passed, used = simulate_looks(SequentialTest(), 0.05, 0.5, 1000, generator("hopeless"))
    assert not passed.any()
    assert (used == 256).all()


def test_capital_against_the_formula_written_out():
    x = np.array([0.0, 0.25, 0.0, 1.0, 0.0, 0.1])
    look = SequentialTest().look(0.2)
    look.update(x)
    capital = np.mean([np.prod([1 + t * (0.2 - xi) / 0.8 for xi in x]) for t in THETAS])
    assert look.evidence == pytest.approx(math.log(capital), rel=1e-12)
    assert look.mean == pytest.approx(x.mean())
    assert look.n == 6


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_order_of_instances_does_not_matter(errors, random):
    shuffled = errors.copy()
    random.shuffle(shuffled)
    one, two = LOUD.look(0.2), LOUD.look(0.2)
    assert one.update(np.array(errors)) == two.update(np.array(shuffled))
    assert one.evidence == pytest.approx(two.evidence, rel=1e-9, abs=1e-9)
    low, high = one.interval
    assert low <= one.mean <= high
    assert two.interval == pytest.approx((low, high), abs=1e-6)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.integers(0, 39))
@settings(max_examples=60, deadline=None)
def test_a_smaller_error_is_never_less_evidence(errors, at):
    x = np.array(errors)
    better = x.copy()
    better[at % len(x)] /= 2
    one, two = LOUD.look(0.2), LOUD.look(0.2)
    one.update(x)
    two.update(better)
    assert two.evidence >= one.evidence - 1e-12


@pytest.mark.parametrize("law", ["coin", "tokens", "beta"])
def test_the_interval_covers_at_its_stopping_time(law):
    g = generator("interval", law)
    inside = 0
    for _ in range(300):
        low, high = decided(LOUD, 0.1, lambda n: LAWS[law](g, 0.07, n)).interval
        inside += low <= 0.07 <= high
    assert inside >= 0.95 * 300 - 4 * math.sqrt(300 * 0.95 * 0.05)  # z < 4, three comparisons


def lost(errors, mean):
    """The capital of bets that the mean is lower, over what refutes it; increasing in the mean."""
    logs = np.log1p(FINE[:, None] * (mean - errors) / (1 - mean)).sum(axis=1)
    return np.log(np.exp(logs - logs.max()).mean()) + logs.max() - math.log(40)


def bisected(errors):
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if lost(errors, middle) >= 0 else (middle, high)
    return high


@pytest.mark.parametrize("n", [1, 2, 64, 700, 16_384])
@pytest.mark.parametrize("share", [0.0, 0.004, 0.1, 0.5, 0.97, 1.0])
def test_the_intervals_ends_are_where_the_bets_win(n, share):
    """Against bisection of the capital written out, to the ends' resolution of 2^-30."""
    rng = np.random.default_rng(n)
    for errors in (rng.random(n) < share, (rng.random(n) < share) * rng.random(n)):
        low, high = confidence_interval(errors.astype(float))
        assert high - 2**-30 <= bisected(errors) <= high + 2**-38
        assert low - 2**-38 <= 1 - bisected(1 - errors) <= low + 2**-30


def test_the_interval_is_not_much_wider_than_an_exact_one():
    errors = np.repeat([1.0, 0.0], [50, 950])
    exact = scipy_stats.binomtest(50, 1000).proportion_ci(0.95, "exact")
    low, high = confidence_interval(errors)
    assert low < exact.low < exact.high < high
    assert high - low < 2 * (exact.high - exact.low)


def test_looks_come_at_a_ratio_of_at_most_a_tenth():
    looks = [0]
    while len(looks) < SequentialTest().looks:
        looks.append(next_look(looks[-1]))
    steps = np.diff(looks)
    assert (steps >= 1).all()
    assert all(b <= max(a + 1, 1.1 * a) for a, b in pairwise(looks))
    assert looks[:3] == [0, 1, 2]
    assert next_look(20) == 22
    assert looks[-1] > 10**8  # batches: no stage runs out of looks before its budget


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SequentialTest(beta=0.0), "beta = 0.0"),
        (lambda: SequentialTest(looks=0), "looks = 0"),
        (lambda: SequentialTest(maximum=0), "maximum = 0"),
        (lambda: LOUD.look(0.0), "delta = 0.0"),
        (lambda: LOUD.look(1.0), "delta = 1.0"),
        (lambda: LOUD.look(0.1).update(np.array([])), "errors has shape"),
        (lambda: LOUD.look(0.1).update(np.array([[0.1]])), "errors has shape"),
        (lambda: LOUD.look(0.1).update(np.array([0.1, 1.5])), r"errors holds .*1\.5"),
        (lambda: LOUD.look(0.1).update(np.array([0.1, math.nan])), "errors holds .*nan"),
        (lambda: next_look(-1), "batches >= 0"),
        (lambda: next_look(3, 1.0), "ratio > 1"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_decided_look_takes_no_more():
    look = decided(LOUD, 0.1, np.ones)
    assert look.decision == "fail"
    assert look.wanted == 0
    with pytest.raises(ValueError, match="already decided"):
        look.update(np.ones(3))


def test_p_does_not_bend_as_stages_get_longer():
    # An error that falls through delta at `length` batches: P / length is the same for all.
    test, ratios = SequentialTest(maximum=8192), []
    for length in (10, 100, 1000, 10_000):
        stages = simulate_stages(
            test, 0.05, lambda b, n=length: 0.05 * (n / max(b, n / 15)), 500, generator(str(length))
        )
        assert stages.passed.all()
        assert (stages.low < stages.high).all()
        ratios.append(stages.high.mean() / length)
    assert max(ratios) / min(ratios) < 1.1  # the interval that P is known in
