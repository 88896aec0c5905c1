"""The exact posterior mean of a finite network by weighting draws of its prior.

Given all weights but the last map's, the posterior is that of a Gaussian process, with the
evidence of the targets in closed form. So the posterior mean at width N is the mean of the
conditional kernels' predictors, weighted by their evidences: no expansion, no dynamics. The price
is that the weights grow uneven with P (`effective`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from algocapture.learners.finite.correction import Problem, split


@dataclass(frozen=True)
class Weighted:
    """Independent estimates of the posterior mean, and how many draws carry the weight."""

    means: Float[Tensor, "B S"]
    effective: float  # (sum w)^2 / sum w^2, of all draws


def weighted_posterior(
    problem: Problem, kernels: Float[Tensor, "M P+S P+S"], blocks: int = 20
) -> Weighted:
    """From conditional kernels of M networks of one width."""
    logs, means = conditional(problem, kernels)
    weights = (logs - logs.max()).exp()
    total = [
        (w[:, None] * m).sum(0) / w.sum()
        for w, m in zip(split(weights, blocks), split(means, blocks), strict=True)
    ]
    effective = weights.sum().square() / weights.square().sum()
    return Weighted(torch.stack(total), float(effective))


def conditional(
    problem: Problem, kernels: Float[Tensor, "M P+S P+S"]
) -> tuple[Float[Tensor, " M"], Float[Tensor, "M S"]]:
    """log evidence (up to a constant) and predictor of each conditional kernel."""
    p, y = problem.count, problem.targets
    eye = torch.eye(p, dtype=kernels.dtype, device=kernels.device)
    factor = torch.linalg.cholesky(kernels[:, :p, :p] + problem.ridge * eye)
    columns = y[None, :, None].expand(len(kernels), -1, 1)
    alpha = torch.cholesky_solve(columns, factor)[..., 0]
    logs = -(alpha @ y) / 2 - factor.diagonal(dim1=1, dim2=2).log().sum(1)
    return logs, torch.einsum("msp,mp->ms", kernels[:, p:, :p], alpha)
