"""The infinitely wide fully-connected network (appendix "The Fully-connected Network")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from algocapture.allocator import keep_freed_memory
from algocapture.config import register
from algocapture.kernels.checks import check_choice, check_count, check_finite, check_variance
from algocapture.kernels.duals import activation


@register
@dataclass(frozen=True)
class InfiniteFullyConnected:
    """K^depth of the appendix: `depth` linear maps with `depth - 1` activations between them."""

    depth: int = 2
    activation: str = "relu"
    weight_var: float = 1.0
    bias_var: float = 0.0

    def __post_init__(self) -> None:
        check_count("depth", self.depth)
        activation(self.activation)
        check_variance("weight_var", self.weight_var)
        check_variance("bias_var", self.bias_var)

    def __call__(
        self,
        x1: Float[Tensor, P1 * features],
        x2: Float[Tensor, P2 * features] | None = None,
        kind: str = "nngp",
    ) -> Float[Tensor, "P1 P2"]:
        """The exact Gram matrix between two sets of inputs, each flattened."""
        check_choice("kind", kind, ("nngp", "ntk"))
        return self.kernels(x1, x2, (kind,))[kind]

    def kernels(
        self,
        x1: Float[Tensor, P1 * features],
        x2: Float[Tensor, P2 * features] | None = None,
        kinds: Sequence[str] = ("nngp", "ntk"),
    ) -> dict[str, Float[Tensor, "P1 P2"]]:
        """Several kinds from one pass."""
        for kind in kinds:
            check_choice("kind", kind, ("nngp", "ntk"))
        keep_freed_memory()
        x1 = check_finite("x1", x1)
        if x1.ndim < 2 or x1[0].numel() == 0:
            raise ValueError(f"x1 has shape {tuple(x1.shape)}, expected (P, features...)")
        left = x1.flatten(1)
        right = left if x2 is None else check_finite("x2", x2).flatten(1)
        if right.shape[1] != left.shape[1] or right.dtype != left.dtype:
            raise ValueError(
                f"x2 has {right.shape[1]} features of {right.dtype}, "
                f"x1 has {left.shape[1]} of {left.dtype}"
            )
        both = self._propagate(left, right, "ntk" in kinds)
        return {kind: both[kind == "ntk"] for kind in kinds}

    def _propagate(self, left: Tensor, right: Tensor, ntk: bool) -> tuple[Tensor, Tensor]:
        """(NNGP, NTK), or the NNGP twice."""
        phi, width = activation(self.activation), left.shape[1]
        k = self._affine(left @ right.T / width)
        if left is right:  # the same rounding on both sides: correlation exactly 1
            q = k.diagonal()
        else:
            q = self._affine(torch.cat([x.square().sum(1) for x in (left, right)]) / width)
        theta = k
        for _ in range(self.depth - 1):
            q1, q2 = q[: len(left), None], q[None, -len(right) :]
            if ntk:
                dual, slope = phi.both(k, q1, q2)
                k = self._affine(dual)
                theta = torch.addcmul(k, theta, slope, value=self.weight_var)
            else:
                k = self._affine(phi.dual(k, q1, q2))
            q = self._affine(phi.dual(q, q, q))
        return k, theta if ntk else k

    def _affine(self, moment: Tensor) -> Tensor:
        bias = torch.full((), self.bias_var, dtype=moment.dtype, device=moment.device)
        return torch.add(bias, moment, alpha=self.weight_var)
