"""The kernel predictor: closed forms, two steps, Monte-Carlo errors, scikit-learn's contract."""

import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch

from algocapture.kernels import InfiniteFullyConnected, InfiniteTransformer
from algocapture.learners import KernelPredictor

KERNEL = InfiniteFullyConnected(3, "gelu", 1.6, 0.1)
ATTENTION = InfiniteTransformer(1, "gelu", 1.7, 0.2, readout="mean")


def draw(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def data(inputs=12, outputs=2):
    return draw(inputs, 5), draw(inputs, outputs, seed=1)


def test_prediction_equals_the_formula():
    (x, y), test = data(), draw(4, 5, seed=2)
    model = KernelPredictor(KERNEL, kind="ntk", ridge=0.3).fit(x, y)
    inverse = torch.linalg.inv(KERNEL(x, kind="ntk") + 0.3 * torch.eye(12).double())
    cross = KERNEL(test, x, "ntk")
    np.testing.assert_allclose(model.predict(test), cross @ inverse @ y, rtol=1e-9)
    _, deviation = model.predict(test, return_std=True)
    prior = KERNEL(test, kind="ntk").diagonal()
    variance = prior - (cross @ inverse @ cross.T).diagonal()
    np.testing.assert_allclose(deviation**2, variance, rtol=1e-8)
    assert model.jitter_ == 0
    assert (model.predict_with_error(test)[1] == 0).all()


def test_adaptation_is_the_two_step_formula_and_not_bayesian():
    (x1, y1), x2, y2 = data(), draw(7, 5, seed=3), draw(7, 2, seed=4)
    test = draw(3, 5, seed=5)

    def one(a, b, at):
        return KERNEL(at, a) @ torch.linalg.solve(KERNEL(a) + 0.2 * torch.eye(len(a)).double(), b)

    model = KernelPredictor(KERNEL, ridge=0.2).fit(x1, y1).adapt(x2, y2)
    expected = one(x1, y1, test) + one(x2, y2 - one(x1, y1, x2), test)
    np.testing.assert_allclose(model.predict(test), expected, rtol=1e-9)
    with pytest.raises(ValueError, match="not a Bayesian update"):
        model.predict(test, return_std=True)
    # A stage is one problem however it was batched, and fit forgets all of it.
    parts = KernelPredictor(KERNEL, ridge=0.2).fit(x1, y1).adapt(x2[:3], y2[:3])
    parts.extend(x2[3:], y2[3:])
    np.testing.assert_allclose(parts.predict(test), expected, rtol=1e-9)
    np.testing.assert_allclose(parts.fit(x1, y1).predict(test), one(x1, y1, test), rtol=1e-9)


def test_gradient_flow_solves_its_differential_equation():
    (x, y), test = data(6), draw(3, 5, seed=2)
    model = KernelPredictor(KERNEL, ridge=0.0).fit(x, y)
    gram, cross = KERNEL(x), KERNEL(test, x)
    train, out, step = torch.zeros_like(y), torch.zeros(3, 2, dtype=torch.float64), 1e-4
    for _ in range(5000):  # Euler to t = 0.5
        residual = y - train
        train, out = train + step * gram @ residual, out + step * cross @ residual
    np.testing.assert_allclose(model.predict_at(test, 0.5), out, rtol=5e-3, atol=1e-4)
    np.testing.assert_allclose(model.predict_at(test, math.inf), model.predict(test), rtol=1e-5)
    np.testing.assert_allclose(model.predict_at(test, 0.0), np.zeros((3, 2)), atol=1e-12)


def test_monte_carlo_errors_reach_the_predictions():
    """Errors over independent seeds agree with the jackknife of each (8 replicates)."""
    x, y, test = draw(8, 3, 4), draw(8, 1, seed=1), draw(3, 3, 4, seed=2)
    runs = [
        KernelPredictor(ATTENTION, ridge=0.05, samples=256, random_state=s).fit(x, y)
        for s in range(30)
    ]
    results = [run.predict_with_error(test) for run in runs]
    means = np.stack([mean for mean, _ in results])
    errors = np.stack([error for _, error in results])
    assert (errors > 0).all()
    ratio = np.sqrt((errors**2).mean() / means.var(0, ddof=1).mean())
    assert 0.7 < ratio < 1.4  # 29 seeds know a deviation to 13%, entries are correlated
    assert "order 1/32" in runs[0].biases_[0]
    np.testing.assert_array_equal(means[3], runs[3].predict(test))


@pytest.mark.slow
def test_a_noisy_gram_at_a_small_ridge_shrinks_the_predictions():
    """The bias that no error bar shows: it falls with the ridge and with the samples."""
    x, y = draw(16, 3, 3), torch.sign(draw(16, 1, seed=1))
    test = draw(8, 3, 3, seed=2)

    def mean_over_seeds(samples, ridge, seeds=24):
        fits = [
            KernelPredictor(ATTENTION, ridge=ridge, samples=samples, random_state=s).fit(x, y)
            for s in range(seeds)
        ]
        return np.mean([fit.predict(test) for fit in fits], axis=0)

    exact = {ridge: mean_over_seeds(4096, ridge, seeds=2) for ridge in (1e-3, 1.0)}
    bias = {
        (samples, ridge): np.linalg.norm(mean_over_seeds(samples, ridge) - exact[ridge])
        / np.linalg.norm(exact[ridge])
        for samples, ridge in ((32, 1e-3), (512, 1e-3), (32, 1.0))
    }
    assert bias[32, 1e-3] > 2 * bias[512, 1e-3]
    assert bias[32, 1e-3] > 1.2 * bias[32, 1.0]


def test_inputs_of_several_lengths_and_a_precomputed_gram():
    items = [draw(3, 4, seed=i)[: 1 + i % 3] for i in range(6)]
    model = KernelPredictor(ATTENTION, samples=64).fit(items, np.arange(6.0))
    assert model.predict(items).shape == (6,)
    x, y = data()
    plain = KernelPredictor(KERNEL).fit(x, y).predict(x[:3])
    given = KernelPredictor("precomputed").fit(KERNEL(x), y)
    np.testing.assert_allclose(given.predict(KERNEL(x[:3], x)), plain)
    with pytest.raises(ValueError, match="prior variance"):
        given.predict(KERNEL(x[:3], x), return_std=True)


def test_jitter_is_added_where_the_gram_is_singular_and_reported():
    x, _ = data()
    model = KernelPredictor(InfiniteFullyConnected(1), ridge=0.0)
    model.fit(x, x @ draw(5, 1, seed=9))  # rank 5 of 12
    assert 0 < model.jitter_ < 1e-9
    np.testing.assert_allclose(model.predict(x), x @ draw(5, 1, seed=9), atol=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: KernelPredictor(ridge=-1.0).fit(*data()), "ridge = -1.0"),
        (lambda: KernelPredictor("rbf").fit(*data()), "kernel = 'rbf'"),
        (lambda: KernelPredictor(InfiniteTransformer()).fit(*data()), "readout = 'tokens'"),
        (lambda: KernelPredictor(ATTENTION, samples=0).fit(*data()), "samples = 0"),
        (lambda: KernelPredictor(kind="ntkk").fit(*data()), "kind = 'ntkk'"),
        (lambda: KernelPredictor().predict(data()[0]), "not fitted"),
        (lambda: KernelPredictor().fit(data()[0], data(5)[1]), "y has 5 targets for 12"),
        (lambda: KernelPredictor().fit(*data()).predict_at(data()[0], -1), "time = -1"),
        (lambda: KernelPredictor().fit(*data()).adapt(data()[0], draw(12)), "outputs of shape"),
        (lambda: KernelPredictor("precomputed").fit(draw(3, 4), draw(3)), "must be square"),
        (lambda: KernelPredictor(random_state="a").fit(*data()), "random_state = 'a'"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_scikit_learn_accepts_the_estimator():
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it does not inherit from BaseEstimator: on purpose
        results = checks.check_estimator(KernelPredictor(), on_fail=None, on_skip=None)
    failed = [r["check_name"] for r in results if r["status"] == "failed"]
    assert failed == []
    assert sum(r["status"] == "passed" for r in results) > 40


def test_scikit_learn_is_not_imported():
    code = "import sys, algocapture.learners; assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
