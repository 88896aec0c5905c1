"""Statements on alpha and beta: coverage against known failure probabilities."""

import numpy as np
import pytest
from scipy.stats import binomtest

from algocapture.rng import Seed
from algocapture.stats.pac import Replicate, clopper_pearson, statements


def test_clopper_pearson_is_scipys():
    for n in (1, 5, 20):
        for k in range(n + 1):
            exact = binomtest(k, n).proportion_ci(0.9, method="exact")
            assert clopper_pearson(k, n, 0.9) == pytest.approx((exact.low, exact.high))


def test_the_interval_of_beta_holds_in_spite_of_misjudged_passes():
    """True beta 0.2; 3% of failing adaptations are judged to pass and 20% of the others are not
    clear. The interval of beta must hold beta in at least 95% of 400 repetitions (z > -3)."""
    draw = Seed(0, ("pac",)).numpy()
    held = 0
    for _ in range(400):
        fails = draw.random(30) < 0.2
        passed = np.where(fails, draw.random(30) < 0.03, draw.random(30) < 0.8)
        failed = fails & ~passed
        replicates = [Replicate(8, bool(p), bool(f)) for p, f in zip(passed, failed, strict=True)]
        (found,) = statements({0: replicates})
        low, high = found.beta[0]
        held += low <= 0.2 <= high
    assert held >= 400 * 0.95 - 3 * np.sqrt(400 * 0.95 * 0.05)


def test_alpha_counts_base_models_that_fail():
    good = [Replicate(8, True, False)] * 60
    bad = [Replicate(8, False, True)] * 60
    (found,) = statements({0: good, 1: good, 2: bad}, target=0.2)
    assert found.beta[0][1] < 0.2 < found.beta[2][0]
    low, high = found.alpha
    assert low <= 1 / 3 <= high
    (all_good,) = statements({0: good, 1: good}, target=0.2)
    assert all_good.alpha[0] == 0.0
    assert "60/60 pass" in all_good.sentence()


def test_bad_arguments():
    with pytest.raises(ValueError, match="no base model"):
        statements({})
    with pytest.raises(ValueError, match=r"target .* 1\.5"):
        statements({0: []}, target=1.5)
