"""Duals against integrals computed another way."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import integrate

from algocapture.kernels import InfiniteFullyConnected, duals
from algocapture.kernels.duals import activation, add_activation, correlation, quadrature

COVARIANCES = [(0.3, 1.0, 1.0), (-0.9, 1.0, 1.0), (0.5, 0.4, 2.5), (0.0, 3.0, 0.1), (1.2, 1.5, 1.0)]
SMOOTH = {
    "erf": (torch.erf, lambda u: 2 / math.sqrt(math.pi) * torch.exp(-u * u)),
    "gelu": (
        torch.nn.functional.gelu,
        lambda u: torch.special.ndtr(u) + u * torch.exp(-u * u / 2) / math.sqrt(2 * math.pi),
    ),
    "identity": (lambda u: u, torch.ones_like),
    "tanh": (torch.tanh, lambda u: 1 - torch.tanh(u) ** 2),
}


def tensors(case):
    return [torch.tensor([value], dtype=torch.float64) for value in case]


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("case", COVARIANCES)
def test_smooth_duals_equal_quadrature(name, case):
    phi, (f, slope) = activation(name), SMOOTH[name]
    args = tensors(case)
    for dual, function in (
        (phi.dual, f),
        (phi.derivative, slope),
        (phi.gain, lambda u: slope(u) * u),
    ):
        expected = quadrature(function, nodes=120)(*args)
        rtol = 1e-4 if name == "tanh" else 2e-7  # tanh is itself by quadrature, on fewer nodes
        torch.testing.assert_close(dual(*args), expected, rtol=rtol, atol=1e-9)


@pytest.mark.parametrize("cosine", [-1.0, -0.7, 0.0, 0.4, 0.99, 1.0])
def test_relu_duals_equal_the_angular_integral(cosine):
    alpha, q1, q2 = math.acos(cosine), 0.7, 2.0
    args = tensors((cosine * math.sqrt(q1 * q2), q1, q2))

    def over_angles(f):  # the radius integrates to 2 for the dual, to 1 for its derivative
        ends = sorted({-math.pi, math.pi, -math.pi / 2, math.pi / 2, alpha - math.pi / 2})
        parts = itertools.pairwise(ends)
        return sum(integrate.quad(f, a, b)[0] for a, b in parts) / (2 * math.pi)

    dual = over_angles(lambda t: 2 * max(0, math.cos(t)) * max(0, math.cos(t - alpha)))
    slope = over_angles(lambda t: float(math.cos(t) > 0) * float(math.cos(t - alpha) > 0))
    phi = activation("relu")
    assert float(phi.dual(*args)) == pytest.approx(dual * math.sqrt(q1 * q2), abs=1e-9)
    assert float(phi.derivative(*args)) == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize("name", ["relu", "erf", "gelu", "identity", "tanh"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_degenerate_covariances_give_finite_values_and_gradients(name, dtype):
    # (c, q1, q2): equal, opposite, zero, beyond Cauchy-Schwarz by rounding, tiny, large
    cases = [(1, 1, 1), (-1, 1, 1), (0, 0, 1), (0, 0, 0), (1 + 1e-7, 1, 1), (1e-14, 1e-14, 1e-14)]
    cases.append((1e9, 1e9, 1e9))
    c, q1, q2 = torch.tensor(cases, dtype=dtype).T.clone().requires_grad_().unbind()
    phi = activation(name)
    for dual in (phi.dual, phi.derivative, phi.gain):
        leaves = [x.detach().requires_grad_() for x in (c, q1, q2)]
        value = dual(*leaves)
        assert torch.isfinite(value).all()
        if name == "identity" and dual is phi.derivative:
            continue
        for gradient in torch.autograd.grad(value.sum(), leaves, allow_unused=True):
            assert gradient is None or torch.isfinite(gradient).all()


def test_correlation_of_rounded_duplicates_is_one():
    q = torch.rand(1000, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 0.1
    assert (correlation(q * 0.3 / 0.3, q, q) == 1).all()


def test_an_added_activation_is_a_kernel(monkeypatch):
    monkeypatch.setattr(duals, "_table", dict(duals._table))
    add_activation("test_sine", torch.sin)
    q = torch.ones(1, dtype=torch.float64)
    c = 0.4 * q
    expected = math.exp(-1) * math.sinh(0.4)  # E[sin u sin v]
    assert float(activation("test_sine").dual(c, q, q)) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match="exists"):
        add_activation("relu", torch.relu)
    with pytest.raises(ValueError, match="did you mean 'gelu'"):
        activation("gellu")


@pytest.mark.parametrize("name", ["relu", "gelu", "erf"])
def test_fully_connected_equals_a_scalar_recursion(name):
    """The recursion of the appendix, entry by entry with quadrature of another make."""
    generator = torch.Generator().manual_seed(1)
    x1 = torch.randn(3, 2, 4, generator=generator, dtype=torch.float64)
    x2 = torch.randn(2, 2, 4, generator=generator, dtype=torch.float64)
    kernel = InfiniteFullyConnected(3, name, weight_var=1.6, bias_var=0.3)
    phi = activation(name)
    for kind in ("nngp", "ntk"):
        got = kernel(x1, x2, kind)
        for (i, a), (j, b) in itertools.product(enumerate(x1.flatten(1)), enumerate(x2.flatten(1))):
            assert float(got[i, j]) == pytest.approx(scalar_kernel(phi, a, b)[kind], rel=1e-12)


def scalar_kernel(phi, a, b):
    """Depth 3, weight variance 1.6, bias variance 0.3, one pair of inputs."""
    pairs = {"ab": "ab", "a": "aa", "b": "bb"}
    inputs = {"a": a, "b": b}
    k = {n: 0.3 + 1.6 * (inputs[u] @ inputs[v]) / len(a) for n, (u, v) in pairs.items()}
    theta = k["ab"]
    for _ in range(2):
        slope = phi.derivative(k["ab"], k["a"], k["b"])
        k = {n: 0.3 + 1.6 * phi.dual(k[n], k[u], k[v]) for n, (u, v) in pairs.items()}
        theta = k["ab"] + 1.6 * slope * theta
    return {"nngp": float(k["ab"]), "ntk": float(theta)}


def test_both_kinds_in_one_pass_are_each():
    x1, x2 = (torch.randn(3, 4, generator=torch.Generator().manual_seed(i)) for i in (0, 1))
    kernel = InfiniteFullyConnected(3, "gelu", 1.6, 0.3)
    both = kernel.kernels(x1, x2)
    assert list(both) == ["nngp", "ntk"]
    for kind, value in both.items():
        assert torch.equal(value, kernel(x1, x2, kind))


@pytest.mark.parametrize("kind", ["nngp", "ntk"])
def test_fully_connected_is_symmetric_and_positive(kind):
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    x = torch.cat([x, x[:5]])  # duplicates
    gram = InfiniteFullyConnected(4, "relu", 2.0, 0.1)(x, kind=kind)
    torch.testing.assert_close(gram, gram.T, rtol=1e-12, atol=0)
    values = np.linalg.eigvalsh(gram.numpy())
    assert values[0] >= -1e-9 * values[-1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: InfiniteFullyConnected(0), "depth = 0"),
        (lambda: InfiniteFullyConnected(2, "swish"), "unknown activation 'swish'"),
        (lambda: InfiniteFullyConnected(2, "relu", -1.0), "weight_var = -1.0"),
        (lambda: InfiniteFullyConnected(2, "relu", 1.0, float("nan")), "bias_var = nan"),
        (lambda: InfiniteFullyConnected()(torch.ones(2, 3), kind="nngpp"), "kind = 'nngpp'"),
        (lambda: InfiniteFullyConnected()(torch.ones(2, 3) * math.nan), "x1 holds NaN"),
        (lambda: InfiniteFullyConnected()(torch.ones(2, 3), torch.ones(2, 4)), "x2 has 4 features"),
        (
            lambda: InfiniteFullyConnected()(torch.ones(2, 3, dtype=torch.int64)),
            "x1 is torch.int64",
        ),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


FIXTURE = json.loads(Path(__file__).with_name("neural_tangents.json").read_text("utf-8"))


@pytest.mark.parametrize("case", FIXTURE["cases"], ids=lambda c: f"{c['activation']}-{c['depth']}")
def test_fully_connected_equals_neural_tangents(case):
    """Values saved by benchmarks/make_neural_tangents_fixture.py."""
    x1, x2 = (torch.tensor(FIXTURE[name], dtype=torch.float64) for name in ("x1", "x2"))
    kernel = InfiniteFullyConnected(
        case["depth"], case["activation"], FIXTURE["weight_var"], FIXTURE["bias_var"]
    )
    for kind in ("nngp", "ntk"):
        expected = torch.tensor(case[kind], dtype=torch.float64)
        torch.testing.assert_close(kernel(x1, x2, kind), expected, rtol=1e-6, atol=1e-12)
