"""The infinitely wide transformer of appendix A: its NNGP and NTK by Monte Carlo over scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from algocapture.config import register
from algocapture.kernels.checks import check_choice, check_count, check_variance
from algocapture.kernels.duals import activation
from algocapture.kernels.estimate import Estimates
from algocapture.kernels.inputs import Inputs
from algocapture.kernels.mlp import Mlp
from algocapture.kernels.monte_carlo import Request, start

KINDS = ("nngp", "ntk")


@register
@dataclass(frozen=True)
class InfiniteTransformer:
    """A block (attention, LayerNorm, activation, linear map) repeated `depth` times.

    Layer 0 is x1 x2^T / d for the NNGP and the NTK. A tuple of score scales gives equal shares
    of the (infinitely many) heads to each scale.
    """

    depth: int = 1
    activation: str = "relu"
    weight_var: float = 1.0
    bias_var: float = 0.0
    output_projection: bool = False
    causal: bool = False
    readout: Literal["tokens", "last", "mean"] = "tokens"
    layernorm_affine: bool = False
    layernorm_eps: float = 0.0
    score_scale: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        check_count("depth", self.depth)
        activation(self.activation)
        check_variance("weight_var", self.weight_var)
        check_variance("bias_var", self.bias_var)
        check_variance("layernorm_eps", self.layernorm_eps)
        check_choice("readout", self.readout, ("tokens", "last", "mean"))
        if not self.scales or not all(
            isinstance(s, int | float) and math.isfinite(s) and s >= 0 for s in self.scales
        ):
            raise ValueError(f"score_scale = {self.score_scale!r}: expected finite numbers >= 0")

    @property
    def scales(self) -> tuple[float, ...]:
        scale = self.score_scale
        return scale if isinstance(scale, tuple) else (scale,)

    @property
    def mlp(self) -> Mlp:
        return Mlp(
            self.activation,
            self.weight_var,
            self.bias_var,
            self.layernorm_eps,
            self.layernorm_affine,
        )

    def estimate(
        self,
        x1: Inputs,
        x2: Inputs | None = None,
        *,
        samples: int = 4096,
        generator: torch.Generator,
        kinds: Sequence[str] = ("nngp",),
        sampler: str = "auto",
        key_dim: int = 64,
        dtype: torch.dtype | str | None = None,
        memory: int = 2**30,
    ) -> Estimates:
        """Gram matrices with standard errors, as a mapping from kind.

        x: (P, T, d), or a list of (T_i, d); x2=None means x1. Values have shape
        (P1, P2, T1, T2) for readout "tokens" (0 where an input is shorter), else (P1, P2).
        `sampler`: see docs/kernels.md; `dtype`: "float32", "float64" or "tf32", by default that
        of the inputs; `memory`: bytes of workspace.
        """
        check_count("samples", samples)
        check_count("key_dim", key_dim)
        check_count("memory", memory)
        if not kinds or isinstance(kinds, str):
            raise ValueError(f"kinds = {kinds!r}: expected a sequence like ('nngp', 'ntk')")
        for kind in kinds:
            check_choice("kind", kind, KINDS)
        request = Request(x1, x2, samples, generator, tuple(kinds), sampler, key_dim, dtype, memory)
        return start(self, request)
