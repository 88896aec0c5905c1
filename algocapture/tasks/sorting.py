"""Sorting under teacher forcing: write the list again in nondecreasing order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from algocapture.config import register
from algocapture.tasks.base import (
    Exponents,
    Task,
    check_integer,
    check_rows,
    check_sampling,
    check_tokens,
    narrow,
)
from algocapture.types import Batch, TaskSpec


@register
@dataclass(frozen=True)
class Sorting(Task):
    """Sort T letters, each uniform over a vocabulary of V, written as [u, SEP, s] with SEP = V.

    The model reads [u, SEP, s_1 .. s_(T-1)] and predicts the next token. It is trained on the
    separator and on s; `error` counts s only (the paper's token error), `instance_error` asks for
    the whole of s.

        >>> Sorting(vocab=5).solve(torch.tensor([[3, 1, 3, 5, 1, 3]]))  # u = 3 1 3, SEP = 5
        tensor([[5, 5, 5, 1, 3, 3]])

    Targets before the separator are filled with SEP and are neither trained on nor scored.
    """

    vocab: int = 100

    exponents: ClassVar[Exponents] = Exponents(
        paper=1.0,
        known=1.0,
        source="counting sort, O(T + V); the paper says 'low' and gives no number",
    )

    def __post_init__(self) -> None:
        check_integer("vocab", self.vocab, least=2)

    @property
    def spec(self) -> TaskSpec:
        ids = self.vocab + 1
        return TaskSpec("tokens", "class", vocab=ids, classes=ids, readout="every")

    def sample(self, size: int, n: int, generator: torch.Generator) -> Batch:
        size, n = check_sampling(self, size, n, generator)
        device = generator.device
        dtype = narrow(self.vocab)
        u = torch.randint(self.vocab, (n, size), generator=generator, device=device, dtype=dtype)
        s = _sorted(u)
        inputs = torch.empty((n, 2 * size), dtype=torch.int64, device=device)
        inputs[:, :size] = u
        inputs[:, size] = self.vocab
        inputs[:, size + 1 :] = s[:, :-1]
        targets = torch.full_like(inputs, self.vocab)
        targets[:, size:] = s
        return Batch(inputs, targets, _from(size - 1, targets), size)

    def solve(self, inputs: Tensor) -> Tensor:
        """A counting sort of the first half: s_k is the least letter with more than k below or
        equal to it."""
        inputs = check_tokens(inputs, self.vocab + 1, shortest=2)
        n, length = inputs.shape
        size = length // 2
        u, middle = inputs[:, :size], inputs[:, size]
        laid_out = (u < self.vocab).all(1) & (middle == self.vocab) & (2 * size == length)
        check_rows(laid_out, f"is not [u, SEP, s[:-1]] with SEP = {self.vocab}")
        counts = u.new_zeros(n, self.vocab).scatter_add_(1, u, torch.ones_like(u))
        ranks = torch.arange(size, device=u.device).repeat(n, 1)
        s = torch.searchsorted(counts.cumsum(1), ranks, right=True)
        return torch.cat([torch.full_like(u, self.vocab), s], 1)

    def scored(self, batch: Batch) -> Tensor:
        return _from(batch.size, batch.targets)

    def symbols(self, instance: Tensor) -> list[tuple[str, str]]:
        return [
            ("SEP", "separator") if token == self.vocab else (str(token), "")
            for token in instance.tolist()
        ]

    def baselines(self, size: int, n: int, generator: torch.Generator) -> dict[str, float]:
        """Constant; repeat the previous token (0 after the separator); the letter that the rank
        alone suggests. The second errs about V/T: no verdict means anything below that."""
        batch = self.sample(size, n, generator)
        inputs = batch.inputs
        ranks = torch.arange(-size, size, device=inputs.device).clamp(min=0)
        guesses = {
            "repeat the previous token": inputs.where(inputs < self.vocab, 0),
            "letter by rank": ((2 * ranks + 1) * self.vocab // (2 * size)).expand_as(inputs),
        }
        return {"constant": self.constant_error(batch)} | {
            name: float(self.error(guess, batch).mean()) for name, guess in guesses.items()
        }


def _sorted(u: Tensor) -> Tensor:
    if u.is_cuda:
        return u.sort(1).values
    return torch.from_numpy(np.sort(u.numpy(), axis=1))  # ten times faster than torch on a CPU


def _from(position: int, targets: Tensor) -> Tensor:
    """True from a position on, the same in every instance (a view: no memory per instance)."""
    return (torch.arange(targets.shape[1], device=targets.device) >= position).expand_as(targets)
