"""The first finite-width correction of the posterior mean (docs/theory/finite_width.md).

Given all weights but those of its last linear map a network is a Gaussian process with the
conditional kernel k = R R^T. So the fourth cumulant of its outputs is a covariance of k over
draws of the other weights,

    U_abcd = cov(k_ab, k_cd) + cov(k_ac, k_bd) + cov(k_ad, k_bc),

and the paper's f_U = 1/6 U~*_abc (y~_a y~_b y~_c - 3 K~^-1_ab y~_c) contracts to covariances of
scalars: P^2 work a draw instead of P^4. U and f_U here are those at the width of the draws,
1/N included. Where the mean of k itself differs from K (three linear maps or more, attention) the
response of f_K to that shift, which the paper leaves out, is of the same order.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Problem:
    """Kernel regression on P inputs, asked at S: K over both, training inputs first."""

    kernel: Float[Tensor, "P+S P+S"]  # at infinite width
    targets: Float[Tensor, " P"]
    ridge: float  # the variance of the observation noise, the paper's kappa

    @property
    def count(self) -> int:
        return len(self.targets)

    def regularised(self) -> Float[Tensor, "P P"]:
        """K + ridge: the paper's K~."""
        p = self.count
        eye = torch.eye(p, dtype=self.kernel.dtype, device=self.kernel.device)
        return self.kernel[:p, :p] + self.ridge * eye

    def alpha(self) -> Float[Tensor, " P"]:
        """K~^-1 y: the paper's y~."""
        return torch.linalg.solve(self.regularised(), self.targets)

    def mean(self) -> Float[Tensor, " S"]:
        """f_K at the test inputs."""
        p = self.count
        return self.kernel[p:, :p] @ self.alpha()

    def response(self, shift: Float[Tensor, "*B P+S P+S"]) -> Float[Tensor, "*B S"]:
        """The first-order change of f_K when the kernel changes by `shift`."""
        return self.residual(shift) @ self.alpha()

    def residual(self, kernels: Tensor) -> Float[Tensor, "*B S P"]:
        """Covariances of f(x*) - k*^T K~^-1 f(X) with f(X)."""
        p = self.count
        beta = torch.linalg.solve(self.regularised(), self.kernel[:p, p:]).T
        return kernels[..., p:, :p] - beta @ kernels[..., :p, :p]


@dataclass(frozen=True)
class Correction:
    """Independent estimates, one a block of draws, of the two terms of order 1/width."""

    cumulant: Float[Tensor, "B S"]  # f_U
    kernel: Float[Tensor, "B S"]  # the response to the mean kernel's shift
    evidence: Float[Tensor, " B"]  # relative change of the evidence: the expansion's own size

    @property
    def total(self) -> Float[Tensor, "B S"]:
        return self.cumulant + self.kernel


def correction(
    problem: Problem, kernels: Float[Tensor, "M P+S P+S"], blocks: int = 20
) -> Correction:
    """f_U and the kernel's response, from conditional kernels of M networks of one width."""
    parts = [_terms(problem, block) for block in split(kernels, blocks)]
    cumulant, kernel, evidence = (torch.stack(part) for part in zip(*parts, strict=True))
    return Correction(cumulant, kernel, evidence)


def _terms(problem: Problem, kernels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    p, inverse = problem.count, torch.linalg.inv(problem.regularised())
    alpha = problem.alpha()
    mean = kernels.mean(0)
    own = (kernels - mean)[:, :p, :p]
    rows = problem.residual(kernels - mean)  # g - E g
    ahead = own @ alpha  # k y~
    quadratic = ahead @ alpha - torch.einsum("ab,mab->m", inverse, own)
    # 1/6 of 3 cov(g y~, y~ k y~), of -3 cov(g y~, tr K~^-1 k), of -6 cov(g_a, k_bc) K~^-1_ab y~_c
    along = torch.einsum("msp,p,m->s", rows, alpha, quadratic) / 2
    across = torch.einsum("msp,mp->s", rows @ inverse, ahead)
    freedom = len(kernels) - 1
    shift = problem.response(mean - problem.kernel)
    return (along - across) / freedom, shift, _evidence(own, inverse, alpha) / freedom


def _evidence(own: Tensor, inverse: Tensor, alpha: Tensor) -> Tensor:
    """A sum over draws of U_abcd H_abcd / 24, H the Hermite polynomial of the targets:
    y~_a y~_b y~_c y~_d - (K~^-1_ab y~_c y~_d, 6 ways) + (K~^-1_ab K~^-1_cd, 3 ways)."""
    q, trace = own @ alpha @ alpha, torch.einsum("ab,mab->m", inverse, own)
    turned = inverse @ own
    fourth = (
        3 * q.square()
        - 6 * q * trace
        - 12 * torch.einsum("mp,pq,mq->m", own @ alpha, inverse, own @ alpha)
    )
    second = 3 * trace.square() + 6 * torch.einsum("mab,mba->m", turned, turned)
    return (fourth + second).sum() / 24


def fourth_cumulant(kernels: Float[Tensor, "M n n"]) -> Float[Tensor, "n n n n"]:
    """U itself, for few inputs."""
    own = kernels - kernels.mean(0)
    pairs = torch.einsum("mab,mcd->abcd", own, own) / (len(own) - 1)
    return pairs + pairs.permute(0, 2, 1, 3) + pairs.permute(0, 2, 3, 1)


def paper_correction(problem: Problem, cumulant: Float[Tensor, "n n n n"]) -> Float[Tensor, " S"]:
    """f_U / N as the paper writes it, from the whole tensor U / N."""
    p, inverse, alpha = problem.count, torch.linalg.inv(problem.regularised()), problem.alpha()
    beta = problem.kernel[p:, :p] @ inverse
    u = cumulant[p:, :p, :p, :p] - torch.einsum("abcn,sn->sabc", cumulant[:p, :p, :p, :p], beta)
    cubic = torch.einsum("sabc,a,b,c->s", u, alpha, alpha, alpha)
    return (cubic - 3 * torch.einsum("sabc,ab,c->s", u, inverse, alpha)) / 6


def split(kernels: Tensor, blocks: int) -> list[Tensor]:
    if not 3 <= blocks <= len(kernels) // 2:
        raise ValueError(
            f"blocks = {blocks} of {len(kernels)} draws: 3 or more blocks of 2 draws or more"
        )
    return list(kernels.tensor_split(blocks))
