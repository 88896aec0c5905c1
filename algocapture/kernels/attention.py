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

# Draws lie inside, (G, P, Q, n, T) in memory: then every product with a covariance or a root is
# one product with all draws as rows, and nothing is copied on the way.
Weights = Float[Tensor, "n G P Q T"]
Tokens = Float[Tensor, "G Pl T Pr T"]  # a covariance between all tokens of two sets of inputs
Rows = Float[Tensor, "G Pl Q Pr Q"]  # the same between query rows
Root = Float[Tensor, "G P T r"]
SPLIT = 16  # draws in a partial sum on a GPU: one long sum would leave most of it idle


def attend(
    scores: Float[Tensor, "n G P Q T"],
    allowed: Bool[Tensor, "G P Q T"] | None,
    scale: Float[Tensor, n] | float,
) -> Weights:
    """Softmax over the keys that a query may see."""
    inside = scores.permute(1, 2, 3, 0, 4)
    if isinstance(scale, Tensor):
        inside = inside * scale[:, None]
    elif scale != 1:
        inside = inside * scale
    if allowed is not None:
        inside = inside.masked_fill(~allowed.unsqueeze(3), -torch.inf)
    return torch.softmax(inside, -1).permute(3, 0, 1, 2, 4)


def _inside(a: Weights) -> Float[Tensor, "G P Qn T"]:
    """All draws as rows: a view, in the layout above."""
    return a.permute(1, 2, 3, 0, 4).flatten(2, 3)


def _left(a: Weights, m: Tokens) -> Tensor:
    """A M: (G, Pl, Q, n, Pr, T)."""
    out = _inside(a) @ m.flatten(3)
    return out.unflatten(-1, m.shape[3:]).unflatten(2, (a.shape[3], a.shape[0]))


def _right(x: Tensor, a: Weights) -> Float[Tensor, "n G Pr PlQ R"]:
    """X A^T of every draw, over the keys of X (G, Pl, Q, n, Pr, T)."""
    return x.permute(3, 0, 4, 1, 2, 5).flatten(3, 4) @ a.mT


def _arranged(x: Float[Tensor, "G Pr PlQ R"], rows: int) -> Rows:
    return x.unflatten(2, (-1, rows)).permute(0, 2, 3, 1, 4)


def _sum_right(x: Tensor, a: Weights) -> Rows:
    """The sum of X A^T over the draws."""
    groups, left, rows, n, right, tokens = x.shape
    flat = x.permute(0, 4, 1, 2, 3, 5).reshape(groups * right, left * rows, n, tokens)
    keys = a.permute(1, 2, 3, 0, 4).flatten(0, 1)
    return _arranged(_contract(flat, keys).unflatten(0, (groups, right)), rows)


def _contract(x: Tensor, y: Tensor) -> Float[Tensor, "B M N"]:
    """The sum of x y^T over draws and features, x (B, M, n, k), y (B, N, n, k)."""
    return contract(x, y, SPLIT if x.is_cuda else x.shape[2] + 1)


def contract(x: Tensor, y: Tensor, split: int) -> Float[Tensor, "B M N"]:
    """The same by partial sums over `split` draws and one over the rest."""
    whole = x.shape[2] // split * split
    rest = x[:, :, whole:].flatten(2) @ y[:, :, whole:].flatten(2).mT
    if not whole:
        return rest
    x, y = (z[:, :, :whole].unflatten(2, (-1, split)).flatten(3).transpose(1, 2) for z in (x, y))
    return rest + (x @ y.mT).sum(1)


def _swap(x: Tensor) -> Tensor:
    """Exchange the roles of left and right: (..., Pl, Ql, Pr, Qr) -> (..., Pr, Qr, Pl, Ql)."""
    return x.movedim((-4, -3), (-2, -1))


def _weigh(x: Tensor, scale: Tensor | float) -> Tensor:
    """x (..., n, Pr, T) times the squared score scale of each draw."""
    if isinstance(scale, Tensor):
        return x * scale.square()[:, None, None]
    return x if scale == 1 else x * scale**2


@dataclass(frozen=True)
class Sums:
    """Over the draws of a chunk."""

    nngp: Rows
    ntk: Rows | None
    q1: Float[Tensor, "G Pl Q"] | None  # variances of the two sides, where asked for
    q2: Float[Tensor, "G Pr Q"] | None

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.nngp + other.nngp,
            _plus(self.ntk, other.ntk),
            _plus(self.q1, other.q1),
            _plus(self.q2, other.q2),
        )


def _plus(x: Tensor | None, y: Tensor | None) -> Tensor | None:
    return None if x is None or y is None else x + y


@dataclass(frozen=True)
class Layer:
    """One attention layer's input covariances between two sets of inputs of each group."""

    nngp: Tokens
    ntk: Tokens | None  # None: not asked for
    rows: tuple[Rows, Rows | None]  # both at the query rows
    symmetric: bool  # the two sets are the same
    projection: bool  # with an output projection W_O
    own: tuple[Tensor | None, Tensor | None] = (None, None)  # each side's Sigma'_pp, for q1, q2

    def moments(self, a1: Weights, a2: Weights, scale: Tensor | float) -> Sums:
        """Sums over the draws of the layer's NNGP and NTK."""
        left = _left(a1, self.nngp)
        if self.ntk is None:
            sigma, theta = _sum_right(left, a2), None
        else:
            sigma, theta = self._both(a1, a2, left, scale)
        q1, q2 = (
            None if own is None else variances(a, own)
            for a, own in zip((a1, a2), self.own, strict=True)
        )
        return Sums(sigma, theta, q1, q2)

    def _both(
        self, a1: Weights, a2: Weights, left: Tensor, scale: Tensor | float
    ) -> tuple[Rows, Rows]:
        nngp_rows, ntk_rows = self.rows
        assert self.ntk is not None
        assert ntk_rows is not None
        first, rows = 2 if self.projection else 1, a1.shape[3]
        mean = _right(left, a2)
        sigma = _arranged(mean.sum(0), rows)
        own = self._trace(a1, a2, self.nngp, left * left, mean * mean, scale)
        if self.ntk is self.nngp:  # the first block: Theta' = Sigma'
            return sigma, (first + 1) * sigma + 4 * nngp_rows * own
        left_ntk = _left(a1, self.ntk)
        mean_ntk = _right(left_ntk, a2)
        mixed = self._trace(a1, a2, self.ntk, left * left_ntk, mean * mean_ntk, scale)
        direct = first * sigma + _arranged(mean_ntk.sum(0), rows)
        return sigma, direct + (2 * nngp_rows + ntk_rows) * own + nngp_rows * mixed

    def _trace(
        self, a1: Weights, a2: Weights, n: Tokens, left: Tensor, mean: Tensor, scale: Tensor | float
    ) -> Rows:
        """The sum of s^2 tr(M, N), M = Sigma': `left` = (A1 M) * (A1 N) and `mean` the same with
        A2^T behind both. A1 (M * N) and `left` meet A2^T in one product."""
        product = _left(a1, self.nngp * n)
        if self.symmetric:  # the third term is the second one's transpose
            half = _sum_right(_weigh(product.sub_(left, alpha=2), scale), a2)
            terms = (half + _swap(half)) / 2
        else:
            right = _left(a2, _swap(self.nngp))
            right = right * (right if n is self.nngp else _left(a2, _swap(n)))
            terms = _sum_right(_weigh(product.sub_(left), scale), a2)
            terms = terms - _swap(_sum_right(_weigh(right, scale), a1))
        weight = torch.as_tensor(scale, dtype=mean.dtype, device=mean.device).square()
        last = (weight.expand(len(mean)) @ mean.flatten(1)).view(mean.shape[1:])
        return terms + _arranged(last, a1.shape[3])


@dataclass(frozen=True)
class FeatureLayer:
    """The same through a root F of low rank, Sigma' = F F^T, where Theta' = Sigma': block 1.

    tr(Sigma', Sigma')_ab is the inner product of F1^T J_a F1 and F2^T J_b F2, so that all draws are
    one matrix product, and no covariance between all tokens is made.
    """

    roots: tuple[Root, Root]
    rows: Rows | None  # Sigma' at the query rows; None: the NTK is not asked for
    symmetric: bool
    projection: bool

    def moments(self, a1: Weights, a2: Weights, scale: Tensor | float) -> Sums:
        """Sums over the draws of the layer's NNGP and NTK."""
        same = self.symmetric
        b1 = _apply(a1, self.roots[0])
        b2 = b1 if same else _apply(a2, self.roots[1])
        sigma = _inner(b1, b2)
        q1, q2 = (
            None if same else torch.linalg.vector_norm(b, dim=(-2, -1)).square() for b in (b1, b2)
        )
        if self.rows is None:
            return Sums(sigma, None, q1, q2)
        f1 = _curvature(a1, b1, self.roots[0], scale)
        f2 = f1 if same else _curvature(a2, b2, self.roots[1], scale)
        trace = 4 * self.rows * _inner(f1, f2)  # 2 Sigma' + Theta' + Sigma', Theta' = Sigma'
        return Sums(sigma, (3 if self.projection else 2) * sigma + trace, q1, q2)


def _apply(a: Weights, root: Root) -> Float[Tensor, "G P Q n r"]:
    """A F, laid out so that draws and features are the contracted axes of one product."""
    return (_inside(a) @ root).unflatten(2, (a.shape[3], a.shape[0]))


def _inner(x: Tensor, y: Tensor) -> Rows:
    """Inner products of features (G, P, Q, n, r), summed over the draws."""
    product = _contract(x.flatten(1, 2), y.flatten(1, 2))
    return product.unflatten(2, y.shape[1:3]).unflatten(1, x.shape[1:3])


def _curvature(a: Weights, b: Tensor, root: Root, scale: Tensor | float) -> Tensor:
    """F^T J_a F = sum_c A_ac f_c f_c^T - b b^T as its upper triangle, times the score scale."""
    i, j = torch.triu_indices(root.shape[-1], root.shape[-1], device=root.device)
    twice = torch.where(i == j, 1.0, 2**0.5).to(root)  # an off-diagonal entry stands for two
    square = _apply(a, root[..., i] * (root[..., j] * twice))
    features = square.addcmul_(b[..., i], b[..., j] * twice, value=-1)
    return features * (scale[:, None] if isinstance(scale, Tensor) else scale)


def cheaper_by_features(rank: int, tokens: int, left: int, right: int, ntk: bool) -> bool:
    """Whether moments of `left` x `right` inputs (`right` 0: the same) are cheaper by features.

    NNGP, in products of T^2 a draw: A F and B1 B2^T against A Sigma', its product with A^T and, for
    two sides, their variances. NTK: features cost N^2 r^2 / 2 a draw, the identity about 8 N^2 T
    and much more memory.
    """
    if ntk:
        return rank * (rank + 1) // 2 <= 12 * tokens
    pairs = left * (right or left)
    return rank * (left + right + pairs) <= tokens * (2 * pairs + (left + right) * bool(right))


def variances(a: Weights, own: Float[Tensor, "G P T T"]) -> Float[Tensor, "G P Q"]:
    """Sum over the draws of each query's variance a Sigma'_pp a^T."""
    rows = _inside(a)
    return (rows @ own).mul_(rows).unflatten(2, (a.shape[3], a.shape[0])).sum((-2, -1))
