"""The paper's lemmas: formulas against autograd, then searches for a violation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings, target
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from algocapture.complexity import lemmas
from algocapture.complexity.lemmas import HESSIAN_Q1, HESSIAN_Q2, SOFTMAX
from algocapture.kernels.attention import Layer

ROUNDING = 1e-9  # float64, sums of at most 8^4 products
SEARCH = settings(max_examples=150, deadline=None, derandomize=True)


def numbers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_subnormal=False)


@st.composite
def cases(draw):  # type: ignore[no-untyped-def]
    """Two rows of scores, from flat to saturated, and two matrices with entries in [-1, 1]."""
    tokens = draw(st.integers(1, 6))
    row = arrays(np.float64, tokens, elements=numbers(-12, 12))
    square = arrays(np.float64, (tokens, tokens), elements=numbers(-1, 1))
    parts = (draw(row), draw(row), draw(square), draw(square))
    return tuple(torch.from_numpy(x) for x in parts)


def test_formulas_are_the_derivatives() -> None:
    rng = torch.Generator().manual_seed(0)
    s1, s2 = torch.randn(2, 4, generator=rng, dtype=torch.float64)
    m = torch.randn(4, 4, generator=rng, dtype=torch.float64)

    def soft(s: torch.Tensor) -> torch.Tensor:
        return s.softmax(-1)

    def derived(f):  # type: ignore[no-untyped-def]
        return lambda x: torch.autograd.functional.jacobian(f, x, create_graph=True)

    one = derived(soft)
    two, three = derived(one), derived(derived(one))
    for found, wanted in ((lemmas.jacobian(s1), one(s1)), (lemmas.second(s1), two(s1)),
                          (lemmas.third(s1), three(s1))):  # fmt: skip
        torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-14)

    def q1(s: torch.Tensor) -> torch.Tensor:
        return soft(s[0]) @ m @ soft(s[1])

    def q2(s: torch.Tensor) -> torch.Tensor:
        return (one(s[0]).T @ m @ one(s[1]) @ m.T).trace()

    both = torch.stack([s1, s2])
    for found, q in ((lemmas.hessian_q1, q1), (lemmas.hessian_q2, q2)):
        wanted = torch.autograd.functional.hessian(q, both).abs().sum()
        torch.testing.assert_close(found(s1, s2, m), wanted, rtol=1e-10, atol=0)
    wanted = (one(s1).T @ m @ one(s2) @ m.mT).trace()
    torch.testing.assert_close(lemmas.trace_term(s1, s2, m, m), wanted)


@SEARCH
@given(cases())
def test_softmax_derivatives(case) -> None:  # type: ignore[no-untyped-def]
    norms = lemmas.softmax_norms(case[0])
    for name, bound in SOFTMAX.items():
        target(float(norms[name]), label=name)
        assert norms[name] <= bound + ROUNDING


@SEARCH
@given(cases())
def test_hessians(case) -> None:  # type: ignore[no-untyped-def]
    s1, s2, sigma, _ = case
    largest = sigma.abs().max()
    one, two = lemmas.hessian_q1(s1, s2, sigma), lemmas.hessian_q2(s1, s2, sigma)
    target(float(one), label="q1")
    target(float(two), label="q2")
    assert one <= HESSIAN_Q1 * largest + ROUNDING
    assert two <= HESSIAN_Q2 * largest**2 + ROUNDING


@SEARCH
@given(cases())
def test_trace_term(case) -> None:  # type: ignore[no-untyped-def]
    s1, s2, m, n = case
    found = lemmas.trace_term(s1, s2, m, n).abs()
    target(float(found))
    assert found <= 4 * m.abs().max() * n.abs().max() + ROUNDING


def covariances(root: np.ndarray, step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A covariance and a perturbed one: both positive semi-definite."""
    return root @ root.T, (root + step) @ (root + step).T


@SEARCH
@given(
    arrays(np.float64, (4, 4), elements=numbers(-2, 2)),
    arrays(np.float64, (4, 4), elements=numbers(-1, 1)),
)
def test_attention_is_lipschitz(root: np.ndarray, step: np.ndarray) -> None:
    """T = 2 by quadrature: no noise that could hide a violation."""
    sigma, moved = covariances(root, step)
    change, largest = np.abs(moved - sigma).max(), np.abs(sigma).max()
    found = np.abs(lemmas.attention_of_two(moved) - lemmas.attention_of_two(sigma)).max()
    bound = lemmas.lipschitz_bound(largest, change)
    target(float(found / bound) if bound > 0 else 0.0)
    assert found <= bound + 1e-6  # quadrature


@SEARCH
@given(
    arrays(np.float64, (4, 4), elements=numbers(-2, 2)),
    arrays(np.float64, (4, 4), elements=numbers(-1, 1)),
)
def test_score_covariances_move_no_more_than_the_lemma_says(
    root: np.ndarray, step: np.ndarray
) -> None:
    """C_(i,c),(j,e) = Sigma_ab Sigma_ce: 2 |Sigma| |Delta| + |Delta|^2."""
    sigma, moved = covariances(root, step)
    change, largest = np.abs(moved - sigma).max(), np.abs(sigma).max()
    assert np.abs(np.kron(moved, moved) - np.kron(sigma, sigma)).max() <= (
        2 * largest * change + change**2 + ROUNDING
    )


def test_quadrature_against_draws() -> None:
    """The oracle of the property, by 400,000 draws; |z| < 4 in four comparisons."""
    rng = torch.Generator().manual_seed(1)
    root = torch.randn(4, 4, generator=rng, dtype=torch.float64)
    u = torch.randn(400_000, 4, 4, generator=rng, dtype=torch.float64)
    one, two = (root[i : i + 2] @ u @ root[i : i + 2].T for i in (0, 2))
    values = one.softmax(-1) @ root[:2] @ root[2:].T @ two.softmax(-1).mT
    error = values.std(0) / 400_000**0.5
    wanted = torch.from_numpy(lemmas.attention_of_two((root @ root.T).numpy(), 48))
    assert ((values.mean(0) - wanted).abs() / error).max() < 4


@SEARCH
@given(
    st.integers(1, 6).flatmap(lambda n: arrays(np.float64, (n, n), elements=numbers(-3, 3))),
    numbers(1e-3, 1e3),
)
def test_regularised_inverse(root: np.ndarray, ridge: float) -> None:
    norms = lemmas.inverse_norms(root @ root.T, ridge)
    target(norms["sandwich"] * ridge)
    slack = 1 + 1e-6  # of an inverse whose condition number is at most 1e5
    assert norms["max"] <= slack / ridge
    assert norms["spectral"] <= slack / ridge
    assert norms["sandwich"] <= slack / (4 * ridge)


def test_bounds_on_the_inverse_are_attained() -> None:
    assert lemmas.inverse_norms(np.zeros((2, 2)), 0.5)["max"] == 2
    assert lemmas.inverse_norms(np.eye(2) * 0.5, 0.5)["sandwich"] == 0.5  # = 1 / (4 * 0.5)


@pytest.mark.parametrize("same", [True, False])
def test_the_kernels_trace_is_the_lemmas(same: bool) -> None:
    """What `kernels.attention` computes by the paper's identity is Tr(J_1^T M J_2 N^T)."""
    rng = torch.Generator().manual_seed(2)
    tokens = 4
    scores = torch.randn(2, 1, 1, tokens, tokens, generator=rng, dtype=torch.float64)
    root = torch.randn(2, tokens, 6, generator=rng, dtype=torch.float64)
    sigma = (root[0] @ root[1].T).view(1, 1, tokens, 1, tokens)
    n = sigma if same else torch.randn(sigma.shape, generator=rng, dtype=torch.float64)
    a1, a2 = (x.softmax(-1)[None] for x in scores)
    layer = Layer(sigma, n, (sigma, n), False, False)
    found = layer.moments(a1, a2, 1.0)
    trace = torch.stack(
        [lemmas.trace_term(scores[0, 0, 0, a], scores[1, 0, 0, b], sigma[0, 0, :, 0], k[0, 0, :, 0])
         for k in (sigma, n) for a in range(tokens) for b in range(tokens)]
    ).view(2, tokens, tokens)  # fmt: skip
    s, t = sigma[0, 0, :, 0], n[0, 0, :, 0]
    mean, mean_ntk = (a1[0, 0, 0] @ k @ a2[0, 0, 0].T for k in (s, t))
    wanted = mean + mean_ntk + (2 * s + t) * trace[0] + s * trace[1]
    torch.testing.assert_close(found.ntk[0, 0, :, 0], wanted, rtol=1e-10, atol=1e-12)


def test_a_layernorm_behind_orthonormal_tokens() -> None:
    """T = 2 by quadrature of the whole attention; T = 1 sees no softmax; |z| < 4."""
    small, eye = 1e-3, np.eye(2)
    apart = np.block([[eye, np.full((2, 2), small)], [np.full((2, 2), small), eye]])
    together = np.block([[eye, eye], [eye, eye]])
    passed, q = (lemmas.attention_of_two(sigma, 48)[0, 0] for sigma in (apart, together))
    found, error = lemmas.orthonormal_sensitivity(2, 20_000, torch.Generator().manual_seed(3))
    assert abs(found - passed / small / q) < 4 * error
    assert lemmas.orthonormal_sensitivity(1, 2, torch.Generator().manual_seed(3)) == (1.0, 0.0)
