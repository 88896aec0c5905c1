"""The Monte-Carlo kernels against quadrature and closed forms."""

import itertools
import math

import pytest
import torch

from algocapture.kernels import InfiniteTransformer
from algocapture.kernels.attention import Layer, attend
from algocapture.kernels.chain import State
from algocapture.kernels.duals import activation
from algocapture.kernels.inputs import Stack
from algocapture.kernels.samplers import SharedRoot
from tests.kernels.oracle import kernels

BOTH = ("nngp", "ntk")
# depth, tokens, other fields: all of depth 1 and 2, T = 2 and 3, two activations, two projections,
# with one more field in some.
MORE = {
    (1, 2, "gelu", True): {"causal": True},
    (1, 3, "gelu", False): {"layernorm_affine": True},
    (1, 3, "relu", True): {"score_scale": 1.7},
    (2, 3, "gelu", True): {"causal": True},
}
CASES = [
    pytest.param(
        depth,
        tokens,
        {"activation": phi, "output_projection": projection}
        | MORE.get((depth, tokens, phi, projection), {}),
        marks=[pytest.mark.slow] if (depth, tokens) == (2, 3) else [],
    )
    for depth, tokens, phi, projection in itertools.product(
        (1, 2), (2, 3), ("relu", "gelu"), (False, True)
    )
]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def draw(*shape, seed=0):
    return torch.randn(shape, generator=generator(seed), dtype=torch.float64)


def largest_z(estimate, expected):
    """|value - expected| in standard errors; entries without spread must agree exactly."""
    error = (estimate.value - expected).abs()
    exact = estimate.stderr < 1e-9
    assert (error[exact] < 1e-7).all()
    return float((error / estimate.stderr.clamp(min=1e-9))[~exact].max())


# 2 kinds x (4 or 9 entries) in 16 cases, 3 samplers at depth 1 and 2 at depth 2: 520 comparisons.
@pytest.mark.parametrize(("depth", "tokens", "fields"), CASES)
def test_kernels_equal_quadrature(depth, tokens, fields):
    kernel = InfiniteTransformer(depth=depth, weight_var=1.7, bias_var=0.2, **fields)
    x1, x2 = draw(tokens, 4, seed=1), draw(tokens, 4, seed=2)
    expected = dict(zip(BOTH, kernels(kernel, x1, x2, count=20 if tokens == 2 else 7), strict=True))
    samplers = ("shared", "pair", "conditional") if depth == 1 else ("shared", "pair")
    for sampler in samplers:
        got = kernel.estimate(
            x1[None],
            x2[None],
            samples=8_000,
            generator=generator(3),
            kinds=BOTH,
            sampler=sampler,
        )
        for kind in BOTH:
            assert largest_z(got[kind], expected[kind][None, None]) < 4


# 3 samplers x 2 kinds x 2 depths: 12 comparisons.
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("sampler", ["row", "shared", "conditional"])
def test_the_last_row_equals_quadrature(depth, sampler):
    kernel = InfiniteTransformer(depth, "gelu", 1.7, 0.2, readout="last")
    x1, x2 = draw(2, 4, seed=1), draw(2, 4, seed=2)
    expected = dict(zip(BOTH, kernels(kernel, x1, x2, count=20), strict=True))
    got = kernel.estimate(
        x1[None], x2[None], samples=8_000, generator=generator(4), kinds=BOTH, sampler=sampler
    )
    for kind in BOTH:
        assert largest_z(got[kind], expected[kind][-1, -1].view(1, 1)) < 4


# 2 kinds x 9 entries: 18 comparisons.
def test_the_mean_of_unequal_lengths_equals_quadrature_of_the_parts():
    kernel = InfiniteTransformer(1, "relu", 1.7, 0.2)
    long, short = draw(3, 4, seed=1), draw(2, 4, seed=2)
    got = kernel.estimate([long, short], samples=8_000, generator=generator(5), kinds=BOTH)
    mean = InfiniteTransformer(1, "relu", 1.7, 0.2, readout="mean").estimate(
        [long, short], samples=8_000, generator=generator(5), kinds=BOTH
    )
    alone = dict(zip(BOTH, kernels(kernel, short, short, count=20), strict=True))
    for kind in BOTH:
        value = got[kind].value
        assert (value[1, :, 2] == 0).all()
        assert (value[:, 1, :, 2] == 0).all()
        error = (value[1, 1, :2, :2] - alone[kind]).abs() / got[kind].stderr[1, 1, :2, :2]
        assert error.max() < 4
        torch.testing.assert_close(mean[kind].value[0, 1], value[0, 1, :, :2].mean())


def block(kernel, sigma, q1, q2, theta=None):
    """One token-wise map of the kernel, plainly."""
    phi = activation(kernel.activation)
    c, one = sigma / (q1 * q2).sqrt(), torch.ones_like(sigma)
    out = kernel.bias_var + kernel.weight_var * phi.dual(c, one, one)
    if theta is None:
        return out
    slope = kernel.weight_var * phi.derivative(c, one, one)
    return out + slope * theta / (q1 * q2).sqrt()


@pytest.mark.parametrize("projection", [False, True])
def test_one_token_is_exact(projection):
    kernel = InfiniteTransformer(2, "gelu", 1.7, 0.2, output_projection=projection)
    x = draw(3, 1, 5)
    got = kernel.estimate(x, samples=8, generator=generator(), kinds=BOTH)
    sigma = x[:, 0] @ x[:, 0].T / 5
    theta = sigma
    for _ in range(2):
        theta = (2 if projection else 1) * sigma + theta
        q = sigma.diagonal()
        sigma, theta = (
            block(kernel, sigma, q[:, None], q[None]),
            block(kernel, sigma, q[:, None], q[None], theta),
        )
    for kind, expected in (("nngp", sigma), ("ntk", theta)):
        torch.testing.assert_close(got[kind].value[:, :, 0, 0], expected, rtol=1e-10, atol=1e-12)
        assert (got[kind].stderr < 1e-12).all()


def test_equal_tokens_are_exact():
    kernel = InfiniteTransformer(2, "relu", 1.7, 0.2)
    one = draw(2, 1, 5)
    for kind in BOTH:
        single = kernel.estimate(one, samples=4, generator=generator(), kinds=[kind])[kind].value
        many = kernel.estimate(
            one.expand(2, 6, 5), samples=40, generator=generator(), kinds=[kind]
        )[kind].value
        torch.testing.assert_close(many, single.expand(2, 2, 6, 6), rtol=1e-9, atol=1e-12)


def test_no_score_scale_is_uniform_attention():
    kernel = InfiniteTransformer(1, "relu", 2.0, 0.1, score_scale=0.0)
    x = draw(2, 7, 5)
    got = kernel.estimate(x, samples=3, generator=generator())["nngp"].value
    mean = x.mean(1)
    sigma = mean @ mean.T / 5
    q = sigma.diagonal()
    expected = block(kernel, sigma, q[:, None], q[None])
    torch.testing.assert_close(got, expected[:, :, None, None].expand(2, 2, 7, 7))


def attention_mean(x, samples, scale=1.0, softmax=True):
    """Mean and standard error of A1 Sigma' A2^T of the first two inputs, from the sampler alone."""
    state = State.first(Stack.of(list(x), x.dtype), False)
    scores = SharedRoot(state.root).draw(samples, generator(7))
    weights = attend(scores, None, scale) if softmax else scores
    a1, a2 = weights[:, 0, 0], weights[:, 0, 1]
    values = a1 @ state.nngp[0, 0, :, 1] @ a2.mT
    return values.mean(0), values.std(0) / samples**0.5, state.nngp[0, 0, :, 1]


# 16 comparisons.
def test_identity_in_place_of_softmax_has_its_closed_form():
    mean, stderr, sigma = attention_mean(draw(2, 4, 3), 20_000, softmax=False)
    expected = sigma * sigma.square().sum()  # Sigma'_ab sum_ce Sigma'_ce^2
    assert ((mean - expected).abs() / stderr).max() < 4


def identity_ntk(sigma, p, q, projection):
    """The same in the NTK's moments at Theta' = Sigma'. The Jacobian diag(a) - a a^T stays, so that
    with k = Sigma'_ab and M = Sigma'_pq a trace has the mean k sum_ce M^3 (terms of third order
    vanish) plus, by Wick's theorem, that of (s^T M t)^2 for scores s, t of covariance k Sigma'."""
    m, k, one, two = sigma[p, :, q], sigma[p, :, q], sigma[p, :, p], sigma[q, :, q]
    norm = m.square().sum()
    twice = k.square() * (norm**2 + (m @ m.T @ m @ m.T).trace())
    own = torch.outer(one.diagonal(), two.diagonal()) * (m.T @ one @ m @ two).trace()
    trace = k * m.pow(3).sum() + twice + own
    return (2 + projection) * k * norm + 4 * k * trace


# 3 x 16 comparisons a case.
@pytest.mark.parametrize("projection", [False, True])
@pytest.mark.parametrize("symmetric", [True, False])
def test_identity_in_place_of_softmax_has_its_closed_form_in_the_ntk(projection, symmetric):
    state = State.first(Stack.of(list(draw(2, 4, 3)), torch.float64), True)
    sides = (slice(None), slice(None)) if symmetric else (slice(0, 1), slice(1, 2))
    nngp = state.nngp[:, sides[0], :, sides[1]]
    layer = Layer(nngp, nngp, (nngp, nngp), symmetric, projection)
    sampler, stream, values = SharedRoot(state.root), generator(7), []
    for _ in range(64):
        scores = sampler.draw(1000, stream)
        values.append(layer.moments(scores[:, :, sides[0]], scores[:, :, sides[1]], 1.0).ntk[0])
    values = torch.stack(values) / 1000
    mean, stderr = values.mean(0), values.std(0) / 8
    for p, q in ((0, 0), (0, 1), (1, 1)) if symmetric else ((0, 1),):
        place = (p, slice(None), q if symmetric else 0)
        expected = identity_ntk(state.nngp[0], p, q, projection)
        assert ((mean[place] - expected).abs() / stderr[place]).max() < 4


# 4 comparisons.
def test_hard_attention_on_two_tokens_is_an_arccosine_law():
    x = draw(2, 2, 3, seed=5)
    mean, stderr, sigma = attention_mean(x, 40_000, scale=1e6)
    own = x @ x.mT / 3
    spread = torch.tensor([1.0, -1.0], dtype=x.dtype)  # the score difference of a query
    cosine = (
        sigma
        * (spread @ sigma @ spread)
        / (own[0].diagonal()[:, None] * (spread @ own[0] @ spread)).sqrt()
        / (own[1].diagonal() * (spread @ own[1] @ spread)).sqrt()
    )
    same = 1 - torch.arccos(cosine) / math.pi  # both differences have one sign
    equal, other = sigma.diagonal().sum() / 2, (sigma.sum() - sigma.diagonal().sum()) / 2
    expected = same * equal + (1 - same) * other
    assert ((mean - expected).abs() / stderr).max() < 4


def test_orthonormal_tokens_meet_at_exactly_one_over_t():
    """Sigma' = I: rows of different queries are independent, of mean 1/T (a != b)."""
    tokens = 6
    x = torch.eye(tokens, dtype=torch.float64).expand(2, tokens, tokens) * tokens**0.5
    mean, stderr, _ = attention_mean(x, 20_000)
    off = ~torch.eye(tokens, dtype=torch.bool)
    z = ((mean - 1 / tokens).abs() / stderr)[off]
    assert z.max() < 4  # 30 comparisons
    assert mean.diagonal().min() > 1.5 / tokens  # where they are one row, its square is larger


def test_shares_of_heads_average_their_scales():
    x = draw(2, 3, 4)
    fields = {"depth": 1, "activation": "identity", "bias_var": 0.0}
    mixed = attention_share(x, (0.0, 2.0), fields)
    parts = [attention_share(x, scale, fields) for scale in (0.0, 2.0)]
    # Before LayerNorm the attention covariance is the plain average of the heads' ones.
    error = (mixed - (parts[0] + parts[1]) / 2).abs().max()
    assert error < 0.03 * mixed.abs().max()


def attention_share(x, scale, fields):
    kernel = InfiniteTransformer(**fields, score_scale=scale, layernorm_eps=1e6)
    value = kernel.estimate(x, samples=8_000, generator=generator(1))["nngp"].value
    return value * 1e6  # a huge eps turns LayerNorm into a constant factor
