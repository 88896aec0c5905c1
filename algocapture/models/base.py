"""What the engine asks of a model: a frozen configuration that builds a module."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import nn

from algocapture.types import TaskSpec


class ModelConfig(ABC):
    """A subclass is a frozen dataclass; `build` returns a module that maps inputs to outputs.

    The module takes `batch.inputs` and returns, for output "class", logits of shape
    `targets.shape + (classes,)`; for output "value", values of shape `targets.shape`.
    """

    @abstractmethod
    def build(self, spec: TaskSpec, generator: torch.Generator) -> nn.Module:
        """A freshly initialised module, on the CPU."""

    def flops(self, spec: TaskSpec, length: int) -> int | None:
        """FLOPs of the forward pass on one instance of that length; None: to be counted."""
        return None

    def activations(self, spec: TaskSpec, length: int) -> int | None:
        """Entries alive when most are, in a forward pass on one instance without gradients."""
        return None
