"""The fully-connected network (appendix "The Fully-connected Network"), one output, flat inputs.

`depth` linear maps with `depth - 1` activations between them, weights of variance
weight_var/fan-in, biases of variance bias_var: the finite twin of `InfiniteFullyConnected`.
Parameters are N(0, 1), their standard deviations factors ("ntk"); "mean-field" divides the output
by a further sqrt(width), so that gradient descent needs a learning rate that grows with the width.
It takes inputs of one shape alone, so that it is no model of a task whose sizes grow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from algocapture.config import register
from algocapture.models.checks import check_choice, check_integer, check_number
from algocapture.models.scaled import Scaled
from algocapture.models.simplified import ACTIVATIONS


@register
@dataclass(frozen=True)
class FullyConnected:
    depth: int = 2
    width: int = 128
    activation: Literal["relu", "gelu", "erf", "identity"] = "relu"
    weight_var: float = 1.0
    bias_var: float = 0.0
    parameterisation: Literal["ntk", "mean-field"] = "ntk"

    def __post_init__(self) -> None:
        check_integer("depth", self.depth, 1)
        check_integer("width", self.width, 1)
        check_choice("activation", self.activation, ACTIVATIONS)
        check_choice("parameterisation", self.parameterisation, ("ntk", "mean-field"))
        check_number("weight_var", self.weight_var, 0)
        check_number("bias_var", self.bias_var, 0)

    def build(self, features: int, generator: torch.Generator) -> FullyConnectedModule:
        return FullyConnectedModule(self, features, generator)


class FullyConnectedModule(nn.Module):
    """(P, features...) to (P,)."""

    def __init__(self, config: FullyConnected, features: int, generator: torch.Generator) -> None:
        super().__init__()
        self.phi = ACTIVATIONS[config.activation]
        widths = [features] + [config.width] * (config.depth - 1)

        def scaled(fan_in: int, *shape: int) -> tuple[Scaled, Scaled]:
            std = math.sqrt(config.weight_var / fan_in)
            weight = Scaled(std, False, generator, *shape, fan_in)
            return weight, Scaled(math.sqrt(config.bias_var), False, generator, *shape)

        layers = [scaled(a, b) for a, b in pairwise(widths)]
        self.weights = nn.ModuleList(weight for weight, _ in layers)
        self.biases = nn.ModuleList(bias for _, bias in layers)
        self.weight, self.bias = scaled(widths[-1])
        self.scale = config.width**-0.5 if config.parameterisation == "mean-field" else 1.0

    def forward(self, inputs: Float[Tensor, "P ..."]) -> Float[Tensor, " P"]:
        return (self._features(inputs) @ self.weight() + self.bias()) * self.scale

    def root(self, inputs: Float[Tensor, "P ..."]) -> Float[Tensor, "P columns"]:
        """R of f = R a, as for the transformer."""
        return self.weight.root(self._features(inputs), self.bias) * self.scale

    def _features(self, inputs: Tensor) -> Tensor:
        x = inputs.flatten(1)
        for weight, bias in zip(self.weights, self.biases, strict=True):
            x = self.phi(x @ weight().mT + bias())
        return x
