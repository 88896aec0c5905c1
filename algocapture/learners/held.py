"""One training set's Gram behind kernel functions k(x1, x2), as other libraries call them.

Independent draws in every call would not agree with each other: a Monte-Carlo Gram is kept for the
training set, and rows of other inputs are what appending them to it gives. The last set that was
compared with itself is the training set.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from algocapture.kernels.gram import Gram, Kernel, new_gram
from algocapture.rng import Seed

Inputs = Float[Tensor, "P T d"]
PORTION = 64  # inputs that are compared with the training set at a time


@dataclass
class Held:
    """k(x1, x2) of one kernel, with the draws of one seed."""

    kernel: Kernel
    kind: str
    samples: int
    seed: int
    _inputs: Inputs | None = field(default=None, init=False)
    _gram: Gram | None = field(default=None, init=False)

    def __call__(self, x1: Inputs, x2: Inputs) -> Float[Tensor, "P1 P2"]:
        held = self._inputs
        if held is not None and torch.equal(x2, held):
            return self.matrix() if torch.equal(x1, held) else self._rows(x1)
        if held is not None and torch.equal(x2, torch.cat([held, x1])):
            return self._appended(x1)[len(held) :]
        self._hold(x2)
        return self.matrix() if torch.equal(x1, x2) else self._rows(x1)

    def diagonal(self, x: Inputs) -> Float[Tensor, " P"]:
        """k(x_i, x_i)."""
        if self._gram is None:
            self._hold(x)
        assert self._gram is not None
        return torch.cat([self._gram.cross(list(part))[1].mean(0) for part in x.split(PORTION)])

    def matrix(self) -> Float[Tensor, "P P"]:
        """The training set's Gram."""
        assert self._gram is not None
        return self._gram.matrix().mean(0)

    def _hold(self, x: Inputs) -> None:
        gram = new_gram(self.kernel, self.kind, self.samples, Seed(self.seed).child("gram", 0))
        gram.append(list(x))
        self._inputs, self._gram = x.clone(), gram

    def _rows(self, x: Inputs) -> Float[Tensor, "S P"]:
        assert self._gram is not None
        return torch.cat([self._gram.cross(list(part))[0].mean(0) for part in x.split(PORTION)])

    def _appended(self, x: Inputs) -> Float[Tensor, "PS PS"]:
        """The training set's Gram grown by x, beside it."""
        assert self._gram is not None
        grown = copy(self._gram)
        grown.append(list(x))
        return grown.matrix().mean(0)
