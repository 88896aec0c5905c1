"""A task that counts what is sampled from it, for calls that sample by themselves.

`Task.baselines` draws as many instances as its predictors need: some are fitted on a draw of
their own. The ledger charges what was drawn, not what was asked for.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cache

import torch

from algocapture.tasks.base import Task
from algocapture.types import Batch


@dataclass(frozen=True)
class Counted:
    """An equal task, and how many instances were drawn from it since."""

    task: Task
    draws: list[int]

    def samples(self) -> int:
        return sum(self.draws)


def counting(task: Task) -> Counted:
    kind, draws = _kind(type(task))
    draws.clear()
    copied = copy.copy(task)
    object.__setattr__(copied, "__class__", kind)  # a frozen dataclass refuses plain assignment
    return Counted(copied, draws)


@cache
def _kind(base: type[Task]) -> tuple[type[Task], list[int]]:
    """One class for each class of tasks, so that caches keyed by the task are filled once."""
    draws: list[int] = []

    def sample(self: Task, size: int, n: int, generator: torch.Generator) -> Batch:
        batch = base.sample(self, size, n, generator)
        draws.append(len(batch))
        return batch

    return type(base.__name__, (base,), {"sample": sample}), draws
