"""LayerNorm, activation and linear map: covariances and NTK through the token-wise half of a block.

At infinite width LayerNorm divides a token by sqrt(Sigma_aa + eps): the mean vanishes, and its
Jacobian is that division (the projection it also holds is of order 1/width in every trace).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from algocapture.kernels.duals import activation


@dataclass(frozen=True)
class Mlp:
    """sigma_b^2 + sigma_W^2 E[phi(u) phi(v)] of normalised u, v, and its NTK."""

    activation: str
    weight_var: float
    bias_var: float
    eps: float
    affine: bool  # LayerNorm's gain and bias are trained too

    def __call__(
        self, nngp: Tensor, ntk: Tensor | None, q1: Tensor, q2: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """(NNGP, NTK) after the map, of tokens with variances q1, q2 (broadcastable)."""
        phi = activation(self.activation)
        n1, n2 = self._normaliser(q1), self._normaliser(q2)
        c, u1, u2 = nngp * n1 * n2, q1 * n1 * n1, q2 * n2 * n2
        if ntk is None:
            return self.bias_var + self.weight_var * phi.dual(c, u1, u2), None
        dual, slope = phi.both(c, u1, u2)
        out = self.bias_var + self.weight_var * dual
        theta = out + self.weight_var * slope * (ntk * n1 * n2)
        if self.affine:  # NOTES, correction 17: one term of the bias, one of the gain
            theta = theta + self.weight_var * (slope + phi.gain(c, u1, u2))
        return out, theta

    def _normaliser(self, q: Tensor) -> Tensor:
        """1 / sqrt(q + eps); 0 for a token without variance, which LayerNorm maps to 0."""
        total = q.clamp(min=0) + self.eps
        positive = total > 0
        return torch.where(positive, torch.where(positive, total, 1.0).rsqrt(), 0.0)
