"""Gaussian weights under the parameterisations that infinite width knows."""

from __future__ import annotations

import torch
from torch import Tensor, nn

PARAMETERISATIONS = ("standard", "ntk", "mean-field")


class Scaled(nn.Module):
    """A Gaussian weight of a given standard deviation, which the parameter or a factor carries."""

    def __init__(self, std: float, standard: bool, generator: torch.Generator, *shape: int) -> None:
        super().__init__()
        draw = torch.randn(shape, generator=generator)
        self.parameter = nn.Parameter(draw * std if standard else draw)
        self.factor = 1.0 if standard else std
        self.normal = not standard  # is the parameter N(0, 1)?

    def forward(self) -> Tensor:
        return self.parameter * self.factor

    def root(self, features: Tensor, bias: Scaled) -> Tensor:
        """R of the linear map `features W^T + b` = R a, a its N(0, 1) parameters of one row."""
        ones = torch.ones_like(features[..., :1])
        return torch.cat([features * self.factor, ones * bias.factor], -1)
