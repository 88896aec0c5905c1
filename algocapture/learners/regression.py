"""Kernel regression on a Gram of independent replicates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from algocapture.kernels.gram import Gram

TEST_BATCH = 64  # test inputs in one cross Gram


@dataclass(frozen=True)
class Fit:
    """One stage: coefficients of the mean Gram, and without each replicate."""

    gram: Gram
    targets: Float[Tensor, "P outputs"]
    alpha: Float[Tensor, "P outputs"]
    left_out: list[Float[Tensor, "P outputs"]]  # empty for an exact Gram
    ridge: float
    jitter: float

    def mean(self, items: Sequence[Tensor]) -> Float[Tensor, "S outputs"]:
        return torch.cat([cross.mean(0) @ self.alpha for cross, _ in self._crosses(items)])

    def error(self, items: Sequence[Tensor]) -> Float[Tensor, "S outputs"]:
        """Jackknife: each replicate is left out of the Gram and of the cross Gram together."""
        if not self.left_out:
            return torch.zeros_like(self.mean(items))
        parts = []
        for cross, _ in self._crosses(items):
            n, total = len(cross), cross.sum(0)
            values = torch.stack(
                [(total - c) / (n - 1) @ a for c, a in zip(cross, self.left_out, strict=True)]
            )
            parts.append((values - values.mean(0)).square().sum(0).mul((n - 1) / n).sqrt())
        return torch.cat(parts)

    def posterior(self, items: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Mean and variance of the Gaussian process with observation noise `ridge`."""
        factor, _ = _cholesky(self.gram.matrix().mean(0), self.ridge)
        means, variances = [], []
        for cross, own in self._crosses(items):
            k = cross.mean(0)
            means.append(k @ self.alpha)
            half = torch.linalg.solve_triangular(factor, k.T, upper=False)
            variances.append((own.mean(0) - half.square().sum(0)).clamp(min=0))
        variance = torch.cat(variances)
        if variance.isnan().any():
            raise ValueError("return_std = True needs the prior variance, unknown if precomputed")
        return torch.cat(means), variance

    def flow(self, items: Sequence[Tensor], time: float) -> Float[Tensor, "S outputs"]:
        """K(x, X) K^-1 (1 - exp(-K t)) y, through the eigenvalues of K."""
        values, vectors = torch.linalg.eigh(self.gram.matrix().mean(0))
        floor = torch.finfo(values.dtype).eps * len(values) * values[-1]
        safe = values.clamp(min=float(floor))
        shrink = torch.where(values > floor, -torch.expm1(-safe * time) / safe, 0.0)
        if math.isfinite(time):  # directions that the kernel does not see do not move
            shrink = torch.where(values > floor, shrink, torch.full_like(values, time))
        alpha = vectors @ (shrink[:, None] * (vectors.T @ self.targets))
        return torch.cat([cross.mean(0) @ alpha for cross, _ in self._crosses(items)])

    def _crosses(self, items: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
        starts = range(0, len(items), TEST_BATCH)
        return [self.gram.cross(items[i : i + TEST_BATCH]) for i in starts]


def regress(gram: Gram, targets: Tensor, ridge: float) -> Fit:
    """Solve (K + ridge) alpha = y, for the mean Gram and without each of its replicates."""
    matrices = gram.matrix()
    targets = targets.reshape(len(targets), -1).to(matrices)
    factor, jitter = _cholesky(matrices.mean(0), ridge)
    n, total = len(matrices), matrices.sum(0)
    left_out = []
    if n > 1:
        for matrix in matrices:
            part, _ = _cholesky((total - matrix) / (n - 1), ridge)
            left_out.append(torch.cholesky_solve(targets, part))
    return Fit(gram, targets, torch.cholesky_solve(targets, factor), left_out, ridge, jitter)


def _cholesky(gram: Tensor, ridge: float) -> tuple[Tensor, float]:
    """The factor of gram + ridge + jitter; the jitter is 0 where that is positive definite."""
    eye = torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    scale = float(gram.diagonal().mean().abs()) or 1.0
    step = torch.finfo(gram.dtype).eps * len(gram) * scale
    for jitter in (0.0, *(step * 10**k for k in range(9))):
        factor, info = torch.linalg.cholesky_ex(gram + (ridge + jitter) * eye)
        # A tiny pivot passes the factorization and ruins the solution.
        if int(info) == 0 and float(factor.diagonal().square().min()) > step / 10:
            return factor, jitter
    raise ValueError(
        f"ridge = {ridge:g}: the Gram plus this ridge is far from positive definite "
        f"(smallest eigenvalue {float(torch.linalg.eigvalsh(gram)[0]):.3g}); raise the ridge or "
        "the number of samples"
    )
