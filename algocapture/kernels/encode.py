"""Tokens as vectors whose layer-0 covariance is 1[same token] + rho(a - b).

Plain one-hot rows under x1 x2^T / d give Sigma' = I / V and hence uniform attention, and without
positions a kernel cannot tell order at all.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from algocapture.kernels.checks import check_count


def encode(
    tokens: Int[Tensor, "P T"],
    vocab: int,
    *,
    positions: int = 16,
    length_scale: float = 4.0,
    strength: float = 1.0,
    dtype: torch.dtype = torch.float64,
) -> Float[Tensor, "P T d"]:
    """One-hot and positional features, scaled by sqrt(d), d = vocab + 2 positions.

    rho(a - b) = strength * mean_k cos((a - b) w_k), with w_k at the quantiles of a normal law of
    deviation 1 / length_scale: close to strength * exp(-(a - b)^2 / (2 length_scale^2)).
    `positions` frequencies; 0 leaves positions out.
    """
    check_count("vocab", vocab)
    check_count("positions", positions, least=0)
    if not (math.isfinite(length_scale) and length_scale > 0):
        raise ValueError(f"length_scale = {length_scale!r}: expected a finite number > 0")
    if not (math.isfinite(strength) and strength >= 0):
        raise ValueError(f"strength = {strength!r}: expected a finite number >= 0")
    if tokens.ndim != 2 or tokens.is_floating_point() or tokens.numel() == 0:
        raise ValueError(f"tokens have shape {tuple(tokens.shape)}, expected integers (P, T)")
    if int(tokens.min()) < 0 or int(tokens.max()) >= vocab:
        raise ValueError(
            f"tokens lie in [{int(tokens.min())}, {int(tokens.max())}], expected [0, {vocab})"
        )
    width = vocab + 2 * positions
    out = torch.zeros(*tokens.shape, width, dtype=dtype, device=tokens.device)
    out.scatter_(-1, tokens[..., None], 1.0)
    if positions:
        levels = (torch.arange(positions, dtype=dtype, device=tokens.device) + 0.5) / positions
        frequencies = torch.special.ndtri(levels) / length_scale
        places = torch.arange(tokens.shape[1], dtype=dtype, device=tokens.device)
        phase = places[:, None] * frequencies
        features = torch.cat([phase.cos(), phase.sin()], -1)
        out[..., vocab:] = features * math.sqrt(strength / positions)
    return out * math.sqrt(width)
