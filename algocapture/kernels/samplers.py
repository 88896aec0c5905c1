"""Draws of attention scores with the law of the score proposition, each way a small piece.

Scores of tokens a, c of input p and b, e of input q have covariance Sigma_pa,qb Sigma_pc,qe.
All samplers return scores of shape (n, G, P, Q, T): n draws, G groups of P inputs that share
their draws, Q query rows (all T of them, or the last), T keys.

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


@dataclass(frozen=True)
class SharedRoot:
    """S_p = F_p U F_p^T with one standard normal U for all inputs of a group."""

    root: Float[Tensor, "G P T r"]

    def draw(self, n: int, generator: torch.Generator) -> Float[Tensor, "n G P T T"]:
        groups, inputs, tokens, rank = self.root.shape
        u = _normal(self.root, (n, groups, rank, rank), generator)
        left = (_stack(self.root) @ u).view(n, groups, inputs, tokens, rank)
        return left @ self.root.mT


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
        groups, inputs, _, rank = self.root.shape
        xi = _normal(self.root, (n, groups, self.last.shape[-1], rank), generator)
        queries = (self.last @ xi).view(n, groups, inputs, 1, rank)
        return queries @ self.root.mT


@dataclass(frozen=True)
class FiniteKeys:
    """Scores Q K^T / sqrt(d_k) of Gaussian queries and keys: U has rank d_k, a bias of 1/d_k."""

    root: Float[Tensor, "G P T r"]
    key_dim: int

    def draw(self, n: int, generator: torch.Generator) -> Float[Tensor, "n G P T T"]:
        groups, inputs, tokens, rank = self.root.shape
        stacked = _stack(self.root)
        shape = (n, groups, rank, self.key_dim)
        split = (n, groups, inputs, tokens, self.key_dim)
        queries = (stacked @ _normal(stacked, shape, generator)).view(split)
        keys = (stacked @ _normal(stacked, shape, generator)).view(split)
        return queries @ keys.mT / self.key_dim**0.5


@dataclass(frozen=True)
class ConditionalPair:
    """The paper's sampler for a pair: S_1, then S_2 given S_1.

    H = L2^-1 S21 S11^-1 S12 L2^-T (the paper prints S21 at the end), and the rotation
    Q^-1 U Q^-T is left out because it has the law of U.
    """

    first: Float[Tensor, "G T r"]  # L1
    carry: Float[Tensor, "G T T"]  # S21 S11^+
    rotated: Float[Tensor, "G T s"]  # L2 Q
    spread: Float[Tensor, "G s s"]  # sqrt(1 - lambda lambda^T)

    @classmethod
    def of(cls, sigma: Float[Tensor, "G 2 T 2 T"]) -> ConditionalPair:
        first, inverse = eigen_root(sigma[:, 0, :, 0])
        carry = sigma[:, 1, :, 0] @ inverse.mT @ inverse
        second, second_inverse = eigen_root(sigma[:, 1, :, 1])
        explained = carry @ sigma[:, 0, :, 1]
        values, vectors = torch.linalg.eigh(second_inverse @ explained @ second_inverse.mT)
        values = values.clamp(0, 1)  # 0 <= H <= I
        spread = (1 - values[..., :, None] * values[..., None, :]).sqrt()
        return cls(first, carry, second @ vectors, spread)

    def draw(self, n: int, generator: torch.Generator) -> Float[Tensor, "n G 2 T T"]:
        (groups, _, r), s = self.first.shape, self.rotated.shape[-1]
        one = self.first @ _normal(self.first, (n, groups, r, r), generator) @ self.first.mT
        noise = self.spread * _normal(self.first, (n, groups, s, s), generator)
        two = self.carry @ one @ self.carry.mT + self.rotated @ noise @ self.rotated.mT
        return torch.stack([one, two], 2)
