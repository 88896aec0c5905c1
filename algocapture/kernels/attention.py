"""Softmax attention at infinite width: moments over score draws.

NNGP: Sigma = E[A1 Sigma' A2^T]. NTK (Hron et al., Theorem 18, corrected in NOTES, 1):
Theta = m Sigma + E[A1 Theta' A2^T] + (2 Sigma' + Theta') * E[tr(Sigma', Sigma')]
        + Sigma' * E[tr(Sigma', Theta')],
m = 1 for the paper's layer and 2 with an output projection; * is elementwise, and
tr(M, N)_ab = Tr((J A1^a)^T M J A2^b N^T) costs O(T^3) for all a, b by the paper's identity.
A score scale s multiplies both traces by s^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Weights = Float[Tensor, "n G P Q T"]
Tokens = Float[Tensor, "G Pl T Pr T"]  # a covariance between all tokens of two sets of inputs
Rows = Float[Tensor, "G Pl Q Pr Q"]  # the same between query rows
Root = Float[Tensor, "G P T r"]


def attend(
    scores: Float[Tensor, "n G P Q T"],
    allowed: Bool[Tensor, "G P Q T"] | None,
    scale: Float[Tensor, n] | float,
) -> Weights:
    """Softmax over the keys that a query may see."""
    if isinstance(scale, Tensor):
        scores = scores * scale[:, None, None, None, None]
    elif scale != 1:
        scores = scores * scale
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
    return torch.softmax(scores, -1)


def _left(a: Weights, m: Tokens) -> Tensor:
    """A M: (n, G, Pl, Q, Pr, T). All draws are rows of one product, so M is never copied."""
    n, groups, inputs, rows, tokens = a.shape
    folded = a.permute(1, 2, 0, 3, 4).reshape(groups, inputs, n * rows, tokens)
    out = folded @ m.flatten(3)
    return out.view(groups, inputs, n, rows, *m.shape[3:]).permute(2, 0, 1, 3, 4, 5)


def _right(x: Tensor, a: Weights) -> Tensor:
    """X A^T over the keys of X (n, G, Pl, Q, Pr, T): (n, G, Pl, Q, Pr, Q')."""
    n, groups, left, rows, right, tokens = x.shape
    flat = x.permute(0, 1, 4, 2, 3, 5).reshape(n, groups, right, left * rows, tokens)
    out = flat @ a.mT
    return out.view(n, groups, right, left, rows, -1).permute(0, 1, 3, 4, 2, 5)


def _swap(x: Tensor) -> Tensor:
    """Exchange the roles of left and right: (..., Pl, Ql, Pr, Qr) -> (..., Pr, Qr, Pl, Ql)."""
    return x.movedim((-4, -3), (-2, -1))


@dataclass(frozen=True)
class Layer:
    """One attention layer's input covariances between two sets of inputs of each group."""

    nngp: Tokens
    ntk: Tokens | None  # None: not asked for
    rows: tuple[Rows, Rows | None]  # both at the query rows
    symmetric: bool  # the two sets are the same
    projection: bool  # with an output projection W_O
    roots: tuple[Root, Root] | None = None  # of low rank, where that is cheaper: block 1

    def moments(self, a1: Weights, a2: Weights, scale: Tensor | float) -> tuple[Rows, Rows | None]:
        """Sums over the draws of the layer's NNGP and NTK."""
        if self.roots is not None:
            return self._by_features(a1, a2, scale)
        left = _left(a1, self.nngp)
        sigma = _right(left, a2)
        if self.ntk is None:
            return sigma.sum(0), None
        same = self.ntk is self.nngp  # the first block: Theta' = Sigma'
        own = self._trace(a1, a2, left, left, sigma, sigma, self.nngp)
        if same:
            theta, mixed = sigma, own
        else:
            left_ntk = _left(a1, self.ntk)
            theta = _right(left_ntk, a2)
            mixed = self._trace(a1, a2, left, left_ntk, sigma, theta, self.ntk)
        square = (torch.as_tensor(scale) ** 2).reshape(-1, 1, 1, 1, 1, 1).to(sigma)
        nngp_rows, ntk_rows = self.rows
        assert ntk_rows is not None
        own, mixed = (own * square).sum(0), (mixed * square).sum(0)
        sigma, theta = sigma.sum(0), theta.sum(0)
        direct = (2 if self.projection else 1) * sigma + theta
        return sigma, direct + (2 * nngp_rows + ntk_rows) * own + nngp_rows * mixed

    def _by_features(
        self, a1: Weights, a2: Weights, scale: Tensor | float
    ) -> tuple[Rows, Rows | None]:
        """The same through features: with Sigma' = F F^T, tr(Sigma', Sigma')_ab is the inner
        product of F1^T J_a F1 and F2^T J_b F2, so all draws are one matrix product."""
        assert self.roots is not None
        same = self.symmetric
        b1 = _apply(a1, self.roots[0])
        b2 = b1 if same else _apply(a2, self.roots[1])
        sigma = _inner(b1, b2)
        if self.ntk is None:
            return sigma, None
        assert self.ntk is self.nngp, "features are for the first block"
        f1 = _curvature(a1, b1, self.roots[0], scale)
        f2 = f1 if same else _curvature(a2, b2, self.roots[1], scale)
        trace = 4 * self.rows[0] * _inner(f1, f2)  # 2 Sigma' + Theta' + Sigma', Theta' = Sigma'
        return sigma, (3 if self.projection else 2) * sigma + trace

    def _trace(
        self,
        a1: Weights,
        a2: Weights,
        left_m: Tensor,
        left_n: Tensor,
        m_mean: Tensor,
        n_mean: Tensor,
        n: Tokens,
    ) -> Tensor:
        """tr(Sigma', N) of every draw; left_* = A1 M, A1 N and *_mean = A1 M A2^T, A1 N A2^T."""
        product = _left(a1, self.nngp * n)
        right_term = _right(left_m * left_n, a2)
        if self.symmetric:
            left_term = _swap(right_term)
        else:
            right_m = _left(a2, _swap(self.nngp))
            right_n = right_m if n is self.nngp else _left(a2, _swap(n))
            left_term = _swap(_right(right_m * right_n, a1))
        return _right(product, a2) - right_term - left_term + m_mean * n_mean


def _apply(a: Weights, root: Root) -> Float[Tensor, "G P Q n r"]:
    """A F, laid out so that draws and features are the contracted axes of one product."""
    n, groups, inputs, rows, tokens = a.shape
    folded = a.permute(1, 2, 3, 0, 4).reshape(groups, inputs, rows * n, tokens)
    return (folded @ root).view(groups, inputs, rows, n, -1)


def _inner(x: Tensor, y: Tensor) -> Rows:
    """Inner products of features (G, P, Q, n, r), summed over the draws."""
    (groups, left, rows1), (_, right, rows2) = x.shape[:3], y.shape[:3]
    product = x.reshape(groups, left * rows1, -1) @ y.reshape(groups, right * rows2, -1).mT
    return product.view(groups, left, rows1, right, rows2)


def _curvature(a: Weights, b: Tensor, root: Root, scale: Tensor | float) -> Tensor:
    """F^T J_a F = sum_c A_ac f_c f_c^T - b b^T as its upper triangle, times the score scale."""
    i, j = torch.triu_indices(root.shape[-1], root.shape[-1], device=root.device)
    twice = torch.where(i == j, 1.0, 2**0.5).to(root)  # an off-diagonal entry stands for two
    square = _apply(a, root[..., i] * (root[..., j] * twice))
    features = square.addcmul_(b[..., i], b[..., j] * twice, value=-1)
    return features * (scale[:, None] if isinstance(scale, Tensor) else scale)


def cheaper_by_features(rank: int, tokens: int, ntk: bool) -> bool:
    """Features cost N^2 r^2 / 2 a draw, the identity about 8 N^2 T and much more memory."""
    return rank * (rank + 1) // 2 <= 12 * tokens if ntk else rank <= 2 * tokens


def variances(a: Weights, own: Float[Tensor, "G P T T"]) -> Float[Tensor, "G P Q"]:
    """Sum over the draws of each query's variance a Sigma'_pp a^T."""
    return ((a @ own) * a).sum(-1).sum(0)
