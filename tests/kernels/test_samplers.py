"""The five samplers against the law of the scores and against each other."""

import itertools

import pytest
import torch

from algocapture.kernels import InfiniteTransformer
from algocapture.kernels.attention import contract
from algocapture.kernels.chain import State, last_rows
from algocapture.kernels.inputs import Stack
from algocapture.kernels.samplers import ConditionalPair, FiniteKeys, RowRoot, SharedRoot

BOTH = ("nngp", "ntk")


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def draw(*shape, seed=0):
    return torch.randn(shape, generator=generator(seed), dtype=torch.float64)


def samplers(x):
    """Each sampler for one pair of inputs, and the pair's covariance."""
    stack = Stack.of(list(x), x.dtype)
    state = State.first(stack, False)
    made = {
        "shared": SharedRoot(state.root),
        "conditional": ConditionalPair.of(state.nngp),
        "keys": FiniteKeys(state.root, 2),
        "row": RowRoot.of(state.root, last_rows(state.root, stack).squeeze(2)),
    }
    return made, state.nngp[0]


# 15 or 36 distinct pairs of scores, 4 samplers, full and low rank: 222 comparisons.
@pytest.mark.parametrize("features", [1, 6])
@pytest.mark.parametrize("name", ["shared", "conditional", "keys", "row"])
def test_scores_have_the_covariance_of_the_proposition(name, features):
    """E[S_ac(p) S_be(q)] = Sigma_pa,qb Sigma_pc,qe, for all entries of two inputs of two tokens."""
    made, sigma = samplers(draw(2, 2, features))
    n = 40_000
    scores = made[name].draw(n, generator(1))[:, 0]  # (n, P, Q, T)
    queries = [1] if name == "row" else [0, 1]
    places = list(itertools.product((0, 1), queries, (0, 1)))
    for (p, a, c), (q, b, e) in itertools.combinations_with_replacement(places, 2):
        rows = (a - 1, b - 1) if name == "row" else (a, b)
        products = scores[:, p, rows[0], c] * scores[:, q, rows[1], e]
        expected = sigma[p, a, q, b] * sigma[p, c, q, e]
        assert (products.mean() - expected).abs() < 4 * products.std() / n**0.5


def test_finite_keys_have_the_kurtosis_of_their_dimension():
    """E[S^4] / E[S^2]^2 = 3 (1 + 2 / d_k): the bias of the sampler, which falls as 1 / d_k."""
    made, sigma = samplers(draw(2, 2, 3))
    variance = sigma[0, 0, 0, 0] ** 2
    for sampler, expected in ((made["keys"], 6.0), (made["shared"], 3.0)):
        fourth = (sampler.draw(200_000, generator(2))[:, 0, 0, 0, 0] ** 4) / variance**2
        assert (fourth.mean() - expected).abs() < 4 * fourth.std() / len(fourth) ** 0.5


# 4 samplers, 2 kinds, 3 distinct Gram entries, depth 1 and 2: 48 comparisons.
@pytest.mark.parametrize("depth", [1, 2])
def test_samplers_agree_on_the_kernel(depth):
    kernel = InfiniteTransformer(depth, "gelu", 1.7, 0.2, readout="last", causal=True)
    x = [draw(4, 3, seed=1), draw(2, 3, seed=2)]
    got = {
        name: kernel.estimate(
            x, samples=3000, generator=generator(i), kinds=BOTH, sampler=name, key_dim=400
        )
        for i, name in enumerate(("shared", "row", "pair", "conditional", "keys"))
    }
    for name, kind in itertools.product(("row", "pair", "conditional", "keys"), BOTH):
        one, other = got["shared"][kind], got[name][kind]
        error = (one.stderr.square() + other.stderr.square()).sqrt().clamp(min=1e-9)
        assert ((one.value - other.value).abs() / error).max() < 4
    assert "order 1/400 from a finite key dimension" in got["keys"]["ntk"].biases


def test_partial_sums_are_the_sum():
    """What a GPU adds in portions of draws."""
    x, y = draw(2, 3, 11, 4), draw(2, 5, 11, 4, seed=1)
    expected = torch.einsum("bmnk,bcnk->bmc", x, y)
    for split in (1, 4, 11, 16):
        torch.testing.assert_close(contract(x, y, split), expected)
