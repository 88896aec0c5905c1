"""The kernels inside scikit-learn and GPyTorch predict what KernelPredictor predicts."""

import math
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge

from algocapture.kernels import InfiniteFullyConnected, InfiniteTransformer
from algocapture.learners import KernelPredictor
from algocapture.learners.held import Held
from algocapture.learners.scikit_learn import WidthKernel

RIDGE = 0.1
SETTINGS = {  # kernel, kind, tokens
    "exact": (InfiniteFullyConnected(3, "gelu", 1.6, 0.1), "ntk", 1),
    "sampled": (InfiniteTransformer(2, "relu", 1.7, 0.2, readout="last"), "nngp", 3),
}


def draw(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


X, Y, TEST = draw(9, 6).numpy(), draw(9, seed=1).numpy(), draw(4, 6, seed=2).numpy()


@pytest.fixture(params=SETTINGS)
def case(request):
    """A wrapper's arguments, and the mean and deviation that the predictor gives."""
    kernel, kind, tokens = SETTINGS[request.param]
    rows = {"samples": 256, "tokens": tokens}
    predictor = KernelPredictor(kernel, kind, RIDGE, samples=256, random_state=0)
    predictor.fit(X.reshape(9, tokens, -1), Y)
    return (kernel, kind), rows, predictor.predict(TEST.reshape(4, tokens, -1), return_std=True)


def test_scikit_learn_predicts_the_same(case):
    arguments, rows, (mean, deviation) = case
    kernel = WidthKernel(*arguments, **rows)
    process = GaussianProcessRegressor(kernel, alpha=RIDGE).fit(X, Y)
    got = process.predict(TEST, return_std=True)
    np.testing.assert_allclose(got[0], mean, rtol=1e-7)
    np.testing.assert_allclose(got[1], deviation, rtol=1e-6)
    ridge = KernelRidge(alpha=RIDGE, kernel="precomputed").fit(kernel(X), Y)
    np.testing.assert_allclose(ridge.predict(kernel(TEST, X)), mean, rtol=1e-7)
    assert clone(kernel).get_params() == kernel.get_params()
    gram, gradient = kernel(X, eval_gradient=True)
    assert gradient.shape == (9, 9, 0)
    np.testing.assert_allclose(gram.diagonal(), kernel.diag(X), rtol=1e-7)


def test_gpytorch_predicts_the_same(case):
    arguments, rows, (mean, deviation) = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it uses torch.jit, which torch calls deprecated
        process = gaussian_process(arguments, rows)
        with torch.no_grad():
            got = process(torch.tensor(TEST))
            np.testing.assert_allclose(got.mean, mean, rtol=1e-4)
            np.testing.assert_allclose(got.stddev, deviation, rtol=1e-4)


def gaussian_process(arguments, rows):
    import gpytorch

    from algocapture.learners.gpytorch import WidthKernel as Wrapped

    class Process(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.mean, self.kernel = gpytorch.means.ZeroMean(), Wrapped(*arguments, **rows)

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    likelihood.noise = RIDGE
    return Process(torch.tensor(X), torch.tensor(Y), likelihood).double().eval()


def test_gpytorch_passes_gradients_to_inputs():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from algocapture.learners.gpytorch import WidthKernel as Wrapped

        kernel, x = SETTINGS["exact"][0], draw(3, 4).requires_grad_()
        gram = Wrapped(kernel)(x, draw(2, 4, seed=1)).to_dense()
        (gradient,) = torch.autograd.grad(gram.sum(), x)
    with torch.no_grad():
        step = torch.zeros_like(x)
        step[1, 2] = 1e-6
        ends = [kernel(x + s * step, draw(2, 4, seed=1)).sum() for s in (1, -1)]
    assert float(gradient[1, 2]) == pytest.approx(float(ends[0] - ends[1]) / 2e-6, rel=1e-5)


def test_one_training_set_is_held_at_a_time():
    kernel, kind, _ = SETTINGS["sampled"]
    held, one, two = Held(kernel, kind, 64, 0), draw(3, 2, 4), draw(2, 2, 4, seed=1)
    alone = held(one, one)
    both = held(two, torch.cat([one, two]))
    torch.testing.assert_close(both[:, :3], held(two, one), rtol=1e-12, atol=0)
    assert torch.equal(held(one, one), alone)
    whole = torch.cat([torch.cat([alone, both[:, :3].T], 1), both])
    assert float(torch.linalg.eigvalsh(whole)[0]) > -1e-9 * math.sqrt(float(whole.norm()))
    assert held(one, two).shape == (3, 2)  # now `two` is held
    assert held.matrix().shape == (2, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: WidthKernel(tokens=4)(X), r"X has shape \(9, 6\), expected .* tokens = 4"),
        (lambda: WidthKernel(tokens=0)(X), "tokens = 0"),
        (lambda: WidthKernel()(X * math.nan), "X holds NaN"),
        (lambda: WidthKernel(kind="ntkk")(X), "kind = 'ntkk'"),
        (lambda: WidthKernel()(X, TEST, eval_gradient=True), "eval_gradient = True"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
