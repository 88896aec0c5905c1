"""The infinite-width kernel as one of GPyTorch's, which this module alone imports.

    covariance = gpytorch.kernels.ScaleKernel(WidthKernel(InfiniteFullyConnected(3)))

Inputs are rows (P, d); of a transformer `tokens` tokens one after the other. A fully-connected
kernel passes gradients to its inputs. The rows of a Monte-Carlo kernel belong to the training set
that was compared with itself last (held.py), without gradients.
"""

from __future__ import annotations

from typing import Any

import gpytorch
import torch
from torch import Tensor

from algocapture.kernels.checks import check_count
from algocapture.kernels.fully_connected import InfiniteFullyConnected
from algocapture.kernels.gram import Kernel
from algocapture.learners.held import Held


class WidthKernel(gpytorch.kernels.Kernel):  # type: ignore[misc]  # untyped
    """NNGP or NTK of an infinitely wide network."""

    def __init__(
        self,
        kernel: Kernel = InfiniteFullyConnected(),  # noqa: B008  # frozen
        kind: str = "nngp",
        tokens: int = 1,
        samples: int = 4096,
        seed: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        check_count("tokens", tokens)
        self.kernel, self.kind, self.tokens = kernel, kind, tokens
        self._held = Held(kernel, kind, samples, seed)

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: Any) -> Tensor:
        if x1.ndim != 2 or x1.shape[1] % self.tokens:
            raise ValueError(
                f"x1 has shape {tuple(x1.shape)}, expected (P, d) without batch dimensions, d a "
                f"multiple of tokens = {self.tokens}"
            )
        if isinstance(self.kernel, InfiniteFullyConnected):
            gram = self.kernel(x1, None if x1 is x2 else x2, self.kind)
            return gram.diagonal() if diag else gram
        x1, x2 = (x.detach().unflatten(1, (self.tokens, -1)) for x in (x1, x2))
        if diag and torch.equal(x1, x2):
            return self._held.diagonal(x1)
        gram = self._held(x1, x2)
        return gram.diagonal() if diag else gram
