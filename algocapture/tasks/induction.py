"""Induction: copy the token that followed the first trigger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

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
)
from algocapture.types import Batch, TaskSpec


@register
@dataclass(frozen=True)
class Induction(Task):
    """The induction head: the last token is a trigger; what followed it the first time?

    The law for T tokens of a vocabulary of V: tokens and trigger c are uniform; every c among the
    tokens is replaced by c+1 mod V; then c is written at i_K, uniform on 0..ceil(T/2)-1, and at
    T-1. The target is the token at i_K+1: uniform over V, and given c it is c+1 with probability
    2/V, c never, any other token with probability 1/V.

        >>> Induction(vocab=10).solve(torch.tensor([[3, 7, 5, 8, 2, 7]]))  # 7 is the trigger
        tensor([5])

    A size has at least 4 tokens: with 3 the token after the first trigger may be the last trigger.
    """

    vocab: int = 1024

    exponents: ClassVar[Exponents] = Exponents(
        paper=1.0, known=1.0, source="one scan; the paper says 'low' and gives no number"
    )

    def __post_init__(self) -> None:
        check_integer("vocab", self.vocab, least=2)

    @property
    def spec(self) -> TaskSpec:
        return TaskSpec("tokens", "class", vocab=self.vocab, classes=self.vocab, smallest=4)

    def sample(self, size: int, n: int, generator: torch.Generator) -> Batch:
        size, n = check_sampling(self, size, n, generator)
        device = generator.device
        tokens = torch.randint(self.vocab, (n, size), generator=generator, device=device)
        trigger = torch.randint(self.vocab, (n, 1), generator=generator, device=device)
        half = (size + 1) // 2
        first = torch.randint(half, (n, 1), generator=generator, device=device)
        inputs = torch.where(tokens == trigger, (trigger + 1) % self.vocab, tokens)
        inputs.scatter_(1, first, trigger)
        inputs[:, -1:] = trigger
        targets = inputs.gather(1, first + 1).squeeze(1)
        return Batch(inputs, targets, torch.ones_like(targets, dtype=torch.bool), size)

    def solve(self, inputs: Tensor) -> Tensor:
        """The token after the first occurrence of the last token."""
        inputs = check_tokens(inputs, self.vocab, shortest=2)
        first = (inputs == inputs[:, -1:]).byte().argmax(1, keepdim=True)  # ties: the earliest
        check_rows(
            first[:, 0] < inputs.shape[1] - 1, "does not hold its last token, the trigger, twice"
        )
        return inputs.gather(1, first + 1).squeeze(1)

    def symbols(self, instance: Tensor) -> list[tuple[str, str]]:
        trigger = instance[-1]
        first = int((instance == trigger).byte().argmax())
        roles = {first: "trigger", first + 1: "answer", len(instance) - 1: "trigger"}
        return [(str(token), roles.get(i, "")) for i, token in enumerate(instance.tolist())]

    def baselines(self, size: int, n: int, generator: torch.Generator) -> dict[str, float]:
        """Constant; the context's commonest token; the likeliest successor of the trigger over
        all instances (c+1, a bigram statistic); the token at one place where the answer may be."""
        batch = self.sample(size, n, generator)
        guesses = {
            "commonest token": batch.inputs[:, :-1].mode(1).values,
            "trigger's successor": (batch.inputs[:, -1] + 1) % self.vocab,
            "second token": batch.inputs[:, 1],
        }
        return {"constant": self.constant_error(batch)} | {
            name: float(self.error(guess, batch).mean()) for name, guess in guesses.items()
        }
