"""AdamW and SGD on named parameters, as torch.optim has them (tested against it).

Our own, because constructing any optimiser of torch.optim imports its compiler (1.5 s of start-up
for each process), and because slots that are named like the parameters are stored and given back
without a translation. Every parameter has its slots from the start; the count of steps is the
member's. Only matrices are decayed, not gains and biases.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor, nn

Slots = dict[str, dict[str, Tensor]]


class Optimiser(ABC):
    """`slots[KEY][NAME]` are the tensors that the method keeps for each parameter."""

    keys: tuple[str, ...]

    def __init__(self, parameters: Mapping[str, nn.Parameter], weight_decay: float) -> None:
        self.parameters = {name: p for name, p in parameters.items() if p.requires_grad}
        self.weight_decay = weight_decay
        self.slots: Slots = {
            key: {name: torch.zeros_like(p) for name, p in self.parameters.items()}
            for key in self.keys
        }

    def clear(self) -> None:
        """Forget the gradients (a module's own zero_grad walks through all its parts)."""
        for parameter in self.parameters.values():
            parameter.grad = None

    @torch.no_grad()
    def step(self, lr: float, number: int) -> None:
        """The step of that number, counted from 0, along the parameters' gradients."""
        moved = {name: p for name, p in self.parameters.items() if p.grad is not None}
        if not moved:
            return
        slots = [[self.slots[key][name] for name in moved] for key in self.keys]
        gradients = [p.grad for p in moved.values() if p.grad is not None]
        self._move(list(moved.values()), gradients, slots, lr, number)

    @abstractmethod
    def _move(
        self,
        parameters: list[Tensor],
        gradients: list[Tensor],
        slots: list[list[Tensor]],
        lr: float,
        number: int,
    ) -> None: ...


class AdamW(Optimiser):
    """m, v: means of g and g^2, unbiased; p -= lr (m / (sqrt v + eps) + decay p)."""

    keys = ("mean", "square")

    def __init__(
        self,
        parameters: Mapping[str, nn.Parameter],
        weight_decay: float,
        betas: tuple[float, float],
        eps: float = 1e-8,
    ) -> None:
        super().__init__(parameters, weight_decay)
        self.betas, self.eps = betas, eps

    def _move(
        self,
        parameters: list[Tensor],
        gradients: list[Tensor],
        slots: list[list[Tensor]],
        lr: float,
        number: int,
    ) -> None:
        (mean, square), (b1, b2) = slots, self.betas
        torch._foreach_lerp_(mean, gradients, 1 - b1)
        torch._foreach_mul_(square, b2)
        torch._foreach_addcmul_(square, gradients, gradients, 1 - b2)
        scale = torch._foreach_sqrt(square)
        torch._foreach_div_(scale, math.sqrt(1 - b2 ** (number + 1)))
        torch._foreach_add_(scale, self.eps)
        if self.weight_decay and (matrices := [p for p in parameters if p.ndim >= 2]):
            torch._foreach_mul_(matrices, 1 - lr * self.weight_decay)
        torch._foreach_addcdiv_(parameters, mean, scale, -lr / (1 - b1 ** (number + 1)))


class Momentum(Optimiser):
    """v = momentum v + g + decay p;  p -= lr v."""

    keys = ("velocity",)

    def __init__(
        self, parameters: Mapping[str, nn.Parameter], weight_decay: float, momentum: float
    ) -> None:
        super().__init__(parameters, weight_decay)
        self.momentum = momentum

    def _move(
        self,
        parameters: list[Tensor],
        gradients: list[Tensor],
        slots: list[list[Tensor]],
        lr: float,
        number: int,
    ) -> None:
        (velocity,) = slots
        torch._foreach_mul_(velocity, self.momentum)
        torch._foreach_add_(velocity, gradients)
        if self.weight_decay:
            pairs = [(v, p) for v, p in zip(velocity, parameters, strict=True) if p.ndim >= 2]
            for v, p in pairs:
                v.add_(p, alpha=self.weight_decay)
        torch._foreach_add_(parameters, velocity, alpha=-lr)
