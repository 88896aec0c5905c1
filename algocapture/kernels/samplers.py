"""Draws of attention scores with the law of the score proposition, each way a small piece.

Scores of tokens a, c of input p and b, e of input q have covariance Sigma_pa,qb Sigma_pc,qe.
All samplers return scores of shape (n, G, P, Q, T): n draws, G groups of P inputs that share
their draws, Q query rows (all T of them, or the last), T keys. In memory draws lie inside,
(G, P, Q, n, T), so that all draws are rows or columns of one product with a root.

- SharedRoot: S_p = F_p U F_p^T, one root for the stacked tokens of a group. Exact; a group is a
  whole Gram (positive semi-definite for every number of draws) or a single pair.
- RowRoot: only the last token's row, S_p = (R xi)_p F_p^T. Exact, and cheaper.
- ConditionalPair: the paper's draw of S_2 given S_1, corrected (NOTES, correction 2). Exact.
- FiniteKeys: queries and keys of finite dimension d_k. A bias of order 1/d_k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from algocapture.kernels.roots import eigen_root


class Sampler(Protocol):
    """What attention asks of a sampler."""

    def draw(self, n: int, generator: torch.Generator) -> Float[Tensor, "n G P Q T"]:
        """n independent draws of the scores."""
        ...


def _normal(like: Tensor, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device)


def _stack(root: Float[Tensor, "G P T r"]) -> Float[Tensor, "G PT r"]:
    return root.flatten(1, 2)


def _rotate(
    root: Float[Tensor, "G N k"], like: tuple[int, int], generator: torch.Generator
) -> Float[Tensor, "G N n s"]:
    """Rows of a root times standard normal (k, s) matrices, `like` = (n, s)."""
    groups, _, inner = root.shape
    return (root @ _normal(root, (groups, inner, like[0] * like[1]), generator)).unflatten(-1, like)


@dataclass(frozen=True)
class SharedRoot:
    """S_p = F_p U F_p^T with one standard normal U for all inputs of a group."""

    root: Float[Tensor, "G P T r"]

    def draw(self, n: int, generator: torch.Generator) -> Float[Tensor, "n G P T T"]:
        _, inputs, tokens, rank = self.root.shape
        left = _rotate(_stack(self.root), (n, rank), generator)
        scores = left.view(-1, inputs, tokens * n, rank) @ self.root.mT
        return scores.unflatten(2, (tokens, n)).permute(3, 0, 1, 2, 4)


@dataclass(frozen=True)
class RowRoot:
    """The last token's row of scores alone: G = R xi, R a root of the last tokens' covariance."""

    root: Float[Tensor, "G P T r"]
    last: Float[Tensor, "G P k"]

    @classmethod
    def of(cls, root: Float[Tensor, "G P T r"], last: Float[Tensor, "G P r"]) -> RowRoot:
        """`last` holds the root's rows of each input's last token."""
        return cls(root, eigen_root(last @ last.mT)[0])

    def draw(self, n: int, generator: torch.Generator) -> Float[Tensor, "n G P 1 T"]:
        queries = _rotate(self.last, (n, self.root.shape[-1]), generator)
        return (queries @ self.root.mT).unsqueeze(2).permute(3, 0, 1, 2, 4)


@dataclass(frozen=True)
class FiniteKeys:
    """Scores Q K^T / sqrt(d_k) of Gaussian queries and keys: U has rank d_k, a bias of 1/d_k."""

    root: Float[Tensor, "G P T r"]
    key_dim: int

    def draw(self, n: int, generator: torch.Generator) -> Float[Tensor, "n G P T T"]:
        split, stacked = self.root.shape[1:3], _stack(self.root)
        queries, keys = (
            _rotate(stacked, (n, self.key_dim), generator).unflatten(1, split).movedim(3, 0)
            for _ in range(2)
        )
        return queries @ keys.mT / self.key_dim**0.5


@dataclass(frozen=True)
class ConditionalPair:
    """The paper's sampler for a pair: S_1 = L1 U L1^T, then S_2 given S_1.

    Its mean S21 S11^-1 S_1 S11^-1 S12 is C U C^T with C = S21 L1^-T, so that no inverse meets a
    draw. H = L2^-1 S21 S11^-1 S12 L2^-T (the paper prints S21 at the end), and the rotation
    Q^-1 U Q^-T is left out because it has the law of U.
    """

    mean: SharedRoot  # of L1 and C
    rotated: Float[Tensor, "G T s"]  # L2 Q
    spread: Float[Tensor, "G s 1 s"]  # sqrt(1 - lambda lambda^T)

    @classmethod
    def of(cls, sigma: Float[Tensor, "G 2 T 2 T"]) -> ConditionalPair:
        first, inverse = eigen_root(sigma[:, 0, :, 0])
        carry = sigma[:, 1, :, 0] @ inverse.mT
        second, second_inverse = eigen_root(sigma[:, 1, :, 1])
        explained = second_inverse @ carry
        values, vectors = torch.linalg.eigh(explained @ explained.mT)
        values = values.clamp(0, 1)  # 0 <= H <= I
        spread = (1 - values[..., :, None] * values[..., None, :]).sqrt()
        mean = SharedRoot(torch.stack([first, carry], 1))
        return cls(mean, second @ vectors, spread.unsqueeze(2))

    def draw(self, n: int, generator: torch.Generator) -> Float[Tensor, "n G 2 T T"]:
        scores = self.mean.draw(n, generator)
        groups, tokens, rank = self.rotated.shape
        noise = _normal(self.rotated, (groups, rank, n, rank), generator).mul_(self.spread)
        left = (self.rotated @ noise.flatten(2)).view(groups, tokens * n, rank)
        rest = (left @ self.rotated.mT).view(groups, tokens, n, tokens)
        scores[:, :, 1] += rest.permute(2, 0, 1, 3)
        return scores
