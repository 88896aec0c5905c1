"""Roots F F^T = Sigma of covariances that may be singular."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


def eigen_root(
    sigma: Float[Tensor, "*batch n n"],
    scale: Float[Tensor, "*batch"] | None = None,
) -> tuple[Float[Tensor, "*batch n r"], Float[Tensor, "*batch r n"]]:
    """A root and its pseudo-inverse, by eigenvalues clipped at rounding, which is relative to
    `scale`, by default the largest eigenvalue.

    A Cholesky root fails once tokens outnumber dimensions, or on equal tokens.
    """
    values, vectors = torch.linalg.eigh((sigma + sigma.mT) / 2)
    largest = values[..., -1:] if scale is None else scale[..., None]
    floor = torch.finfo(sigma.dtype).eps * sigma.shape[-1] * largest.clamp(min=0)
    kept = values > floor
    used = kept.reshape(-1, kept.shape[-1]).any(0)
    if not used.any():
        used[-1] = True  # the zero matrix keeps one (zero) column
    values, vectors, kept = values[..., used], vectors[..., used], kept[..., used]
    scale = torch.where(kept, values, 0.0).sqrt()
    inverse = torch.where(kept, values, 1.0).rsqrt() * kept
    return vectors * scale[..., None, :], (vectors * inverse[..., None, :]).mT


@dataclass(frozen=True)
class GrowingRoot:
    """A block-triangular root that new rows extend without touching the old ones."""

    factor: Float[Tensor, "n r"]
    inverse: Float[Tensor, "r n"]

    @classmethod
    def of(cls, sigma: Float[Tensor, "n n"]) -> GrowingRoot:
        return cls(*eigen_root(sigma))

    def grow(self, cross: Float[Tensor, "m n"], own: Float[Tensor, "m m"]) -> GrowingRoot:
        """The root of [[Sigma, cross^T], [cross, own]] whose first rows are the old ones.

        The Schur complement of Monte-Carlo estimates may be indefinite: it is clipped. What is
        left of it where new rows repeat old ones is rounding of `own`, not of itself.
        """
        lower = cross @ self.inverse.mT
        rounding = len(cross.mT) * own.diagonal().max()
        corner, corner_inverse = eigen_root(own - lower @ lower.mT, rounding)
        (n, r), (m, s) = self.factor.shape, corner.shape
        zero = self.factor.new_zeros
        top = torch.cat([self.factor, zero(n, s)], 1)
        bottom = torch.cat([lower, corner], 1)
        inverse_top = torch.cat([self.inverse, zero(r, m)], 1)
        inverse_bottom = torch.cat([-corner_inverse @ lower @ self.inverse, corner_inverse], 1)
        return GrowingRoot(torch.cat([top, bottom]), torch.cat([inverse_top, inverse_bottom]))
