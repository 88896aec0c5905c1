"""Left-hand sides of the paper's lemmas on the propagation of errors, in closed form.

For a softmax row a = a(s) write L_ce = 1[c = e] - a_e; then d_e a_c = a_c L_ce, and
d_e d_b a_c = a_c (L_ce L_cb - a_e L_eb). All functions take leading batch axes and may be
differentiated, so that a search can climb towards a violation.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import expit
from torch import Tensor

Row = Float[Tensor, "*n T"]
Matrix = Float[Tensor, "*n T T"]

# Lemma -> the constant that the paper proves.
SOFTMAX = {"(i)": 2.0, "(ii)": 6.0, "(iii)": 26.0, "(iv)": 2.0}
HESSIAN_Q1, HESSIAN_Q2 = 20.0, 176.0


def _l(a: Row) -> Matrix:
    return torch.eye(a.shape[-1], dtype=a.dtype) - a.unsqueeze(-2)


def jacobian(s: Row) -> Float[Tensor, "*n T T"]:
    """d a_c / d s_e."""
    a = s.softmax(-1)
    return a.unsqueeze(-1) * _l(a)


def second(s: Row) -> Float[Tensor, "*n T T T"]:
    """d^2 a_c / d s_e d s_b."""
    a = s.softmax(-1)
    l, j = _l(a), jacobian(s)
    products = l.unsqueeze(-1) * l.unsqueeze(-2)
    return a[..., None, None] * (products - j.unsqueeze(-3))


def third(s: Row) -> Float[Tensor, "*n T T T T"]:
    """d^3 a_c / d s_e d s_b d s_r."""
    a = s.softmax(-1)
    l, j = _l(a), jacobian(s)
    inner = torch.einsum("...ce,...cb->...ceb", l, l) - j.unsqueeze(-3)
    out = torch.einsum("...cr,...ceb->...cebr", l, inner)
    out = out - torch.einsum("...er,...cb->...cebr", j, l)
    out = out - torch.einsum("...br,...ce->...cebr", j, l)
    out = out - torch.einsum("...er,...eb->...ebr", j, l).unsqueeze(-4)
    out = out + torch.einsum("...e,...br->...ebr", a, j).unsqueeze(-4)
    return a[..., None, None, None] * out


def softmax_norms(s: Row) -> dict[str, Float[Tensor, "*n"]]:
    """The largest over c of |nabla^k a_c| / a_c for k = 1, 2, 3, and |J| itself."""
    a = s.softmax(-1)
    first = jacobian(s).abs().sum(-1)
    return {
        "(i)": (first / a).amax(-1),
        "(ii)": (second(s).abs().sum((-1, -2)) / a).amax(-1),
        "(iii)": (third(s).abs().sum((-1, -2, -3)) / a).amax(-1),
        "(iv)": first.sum(-1),
    }


def hessian_q1(s1: Row, s2: Row, sigma: Matrix) -> Float[Tensor, "*n"]:
    """|nabla^2 q_1|_{1,1} of q_1 = a(s1)^T Sigma a(s2)."""
    a1, a2 = s1.softmax(-1), s2.softmax(-1)
    one = torch.einsum("...gce,...gh,...h->...ce", second(s1), sigma, a2)
    two = torch.einsum("...hce,...gh,...g->...ce", second(s2), sigma, a1)
    mixed = jacobian(s1).mT @ sigma @ jacobian(s2)
    return _sum(one) + _sum(two) + 2 * _sum(mixed)


def hessian_q2(s1: Row, s2: Row, sigma: Matrix) -> Float[Tensor, "*n"]:
    """|nabla^2 q_2|_{1,1} of q_2 = Tr(J_1^T Sigma J_2 Sigma^T)."""
    first = sigma @ jacobian(s2) @ sigma.mT
    last = sigma.mT @ jacobian(s1) @ sigma
    one = torch.einsum("...grce,...gr->...ce", third(s1), first)
    two = torch.einsum("...hmce,...hm->...ce", third(s2), last)
    mixed = torch.einsum("...grc,...gh,...rm,...hme->...ce", second(s1), sigma, sigma, second(s2))
    return _sum(one) + _sum(two) + 2 * _sum(mixed)


def _sum(x: Matrix) -> Float[Tensor, "*n"]:
    return x.abs().sum((-1, -2))


def trace_term(s1: Row, s2: Row, m: Matrix, n: Matrix) -> Float[Tensor, "*n"]:
    """Tr(J_1^T M J_2 N^T), at most 4 |M|_max |N|_max."""
    return torch.einsum("...gr,...gh,...hm,...rm->...", jacobian(s1), m, jacobian(s2), n)


def attention_of_two(sigma: np.ndarray, nodes: int = 32) -> np.ndarray:
    """Sigma_ab(X1, X2) behind attention for T = 2, by Gauss and Hermite: exact to rounding.

    `sigma` is the covariance (4, 4) of the tokens of X1, then of X2. A softmax over two keys sees
    the difference of two scores alone, so that the mean is over a bivariate normal.
    """
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    w = w / w.sum()
    own1, own2, cross = sigma[:2, :2], sigma[2:, 2:], sigma[:2, 2:]
    contrast = np.array([1.0, -1.0])
    spread1, spread2 = (contrast @ own @ contrast for own in (own1, own2))
    shared = contrast @ cross @ contrast
    out = np.empty((2, 2))
    for a in range(2):
        for b in range(2):
            v1, v2, c = own1[a, a] * spread1, own2[b, b] * spread2, cross[a, b] * shared
            slope = c / np.sqrt(v1) if v1 > 0 else 0.0
            rest = np.sqrt(max(v2 - slope**2, 0.0))
            p = expit(np.sqrt(max(v1, 0.0)) * x)
            r = expit(slope * x[:, None] + rest * x[None, :])
            e_p, e_r, e_pr = w @ p, w @ r @ w, w @ (p[:, None] * r) @ w
            both = np.array([[e_pr, e_p - e_pr], [e_r - e_pr, 1 - e_p - e_r + e_pr]])
            out[a, b] = (both * cross).sum()
    return out


def lipschitz_bound(largest: float, change: float) -> float:
    """The paper's bound of |Delta Sigma|_max by |Sigma'|_max and |Delta Sigma'|_max."""
    return (1 + 20 * largest**2) * change + 10 * largest * change**2


def orthonormal_sensitivity(
    tokens: int, draws: int, generator: torch.Generator
) -> tuple[float, float]:
    """d c / d epsilon of the correlation c behind block 1's attention and LayerNorm, for two inputs
    of orthonormal tokens whose covariance is epsilon in every entry, and its standard error.

    The softmaxes sum to 1, so attention passes epsilon on as it is; LayerNorm divides it by
    q = E |a|^2 of a softmax of T independent N(0, 1) scores, about e / T.
    """
    scores = torch.randn(draws, tokens, generator=generator, dtype=torch.float64)
    squares = scores.softmax(-1).square().sum(-1)
    q = float(squares.mean())
    return 1 / q, float(squares.std()) / draws**0.5 / q**2


def inverse_norms(gram: np.ndarray, ridge: float) -> dict[str, float]:
    """|K~^-1|_max, |K~^-1|_2 and |K~^-1 K K~^-1|_max for K~ = K + ridge."""
    inverse = np.linalg.inv(gram + ridge * np.eye(len(gram)))
    return {
        "max": float(np.abs(inverse).max()),
        "spectral": float(np.linalg.norm(inverse, 2)),
        "sandwich": float(np.abs(inverse @ gram @ inverse).max()),
    }
