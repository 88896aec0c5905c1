"""A scheme: an algorithm for a task that runs under a budget of steps and counts what it does.

An operation is charged before it is done, and one that the budget does not cover is not done: so a
scheme never does more than its budget, and it finishes exactly if an unlimited run would need no
more. Operations are counted where they happen, in the algorithm; nothing here measures time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from algocapture.tasks.base import Task

UNLIMITED = 2**62

Integers = NDArray[np.int64]
Answer = Any  # a class id, a value, or an array of them
# Instance, budget -> answer (of no meaning unless finished), operations, finished
Solver = Callable[[int, int], tuple[Answer, int, bool]]


@dataclass(frozen=True)
class Outcome:
    """What a scheme gave on a batch: answers mean nothing where it did not finish."""

    answers: Tensor  # shape of the targets
    operations: Integers
    finished: NDArray[np.bool_]


@dataclass(frozen=True)
class Scheme:
    """One algorithm for one task."""

    name: str
    task: type[Task]
    operation: str  # what is counted as one
    theory: str  # the exponent of its operations in T, and why
    prepare: Callable[[Any, Tensor], Solver]  # task, inputs -> a solver of single instances
    exponent: float | None = None  # where the theory is exact
    values: bool = False  # answers are numbers, not class ids

    def run(self, task: Task, inputs: Tensor, budget: int = UNLIMITED) -> Outcome:
        """Every instance within the budget."""
        if not isinstance(task, self.task):
            raise ValueError(
                f"scheme {self.name!r} solves {self.task.__name__}, got {type(task).__name__}"
            )
        if isinstance(budget, bool) or not isinstance(budget, int) or budget < 0:
            raise ValueError(f"budget must be an integer >= 0, got {budget!r}")
        solver = self.prepare(task, inputs)
        done = [solver(i, min(budget, UNLIMITED)) for i in range(len(inputs))]
        answers, operations, finished = zip(*done, strict=True)
        kind = torch.float32 if self.values else torch.int64
        return Outcome(
            torch.as_tensor(np.array(answers), dtype=kind),
            np.array(operations, np.int64),
            np.array(finished, np.bool_),
        )


def rows(inputs: Tensor) -> Integers:
    """Token ids for a kernel."""
    if inputs.ndim != 2 or inputs.is_floating_point():
        raise ValueError(
            f"inputs have shape {tuple(inputs.shape)} and are {inputs.dtype}: expected token ids "
            "(n, length)"
        )
    return np.ascontiguousarray(inputs.detach().cpu().numpy(), dtype=np.int64)
