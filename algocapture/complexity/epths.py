"""Efficient polynomial-time heuristic schemes (the paper's Definition of EPTHS), measured.

A scheme of complexity O(T^k) has for every delta an implementation that is right with probability
> 1 - delta over the task's own instances, in eta(1/delta) T^k steps. By the paper's remark (Markov)
an exact algorithm gives one: run it for mean/delta steps, then answer at random. `truncated` does
this with a mean from other instances and counts how often the answer is right; `quantiles` says how
many steps would have been enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from algocapture.complexity.schemes import UNLIMITED, Scheme
from algocapture.tasks.base import Task
from algocapture.types import Batch

TOKENS = 2**22  # instances are made in portions of about so many positions


@dataclass(frozen=True)
class Trials:
    """A scheme on instances of one size under a budget."""

    operations: NDArray[np.int64]
    finished: NDArray[np.bool_]
    right: NDArray[np.bool_]  # every scored position within Delta/2 of the answer


@dataclass(frozen=True)
class Truncated:
    """The delta-implementation of the Markov remark."""

    delta: float
    budget: int  # mean / delta, the mean measured on other instances
    instances: int
    right: int
    low: float  # of the success probability, one-sided at `confidence`

    @property
    def holds(self) -> bool:
        """Right with probability > 1 - delta, at the confidence of `low`."""
        return self.low > 1 - self.delta


def trials(
    scheme: Scheme,
    task: Task,
    size: int,
    n: int,
    generator: torch.Generator,
    budget: int = UNLIMITED,
) -> Trials:
    """`n` fresh instances; one that the budget ends gets another instance's answer."""
    portion = min(n, max(2, TOKENS // size))
    parts = []
    for begin in range(0, n, portion):
        batch = task.sample(size, min(portion, n - begin), generator)
        done = scheme.run(task, batch.inputs, budget)
        ended = torch.as_tensor(done.finished)
        answers = torch.where(_beside(ended, batch), done.answers, batch.targets.roll(1, 0))
        parts.append((done.operations, done.finished, _right(task, answers, batch)))
    operations, finished, right = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Trials(operations, finished, right)


def _beside(flags: Tensor, batch: Batch) -> Tensor:
    return flags.view(-1, *[1] * (batch.targets.ndim - 1))


def _right(task: Task, answers: Tensor, batch: Batch) -> NDArray[np.bool_]:
    """The rule of the definition: dist < Delta/2."""
    close = (answers.double() - batch.targets.double()).abs() < task.margin / 2
    held: NDArray[np.bool_] = (close | ~task.scored(batch)).view(len(batch), -1).all(1).numpy()
    return held


def truncated(
    scheme: Scheme,
    task: Task,
    size: int,
    n: int,
    generator: torch.Generator,
    *,
    mean: float,
    delta: float,
    confidence: float = 0.95,
) -> Truncated:
    """Run for at most mean/delta steps on fresh instances; how often is the answer right?"""
    if not 0 < delta <= 1:
        raise ValueError(f"delta must lie in (0, 1], got {delta!r}")
    budget = math.ceil(mean / delta)
    right = int(trials(scheme, task, size, n, generator, budget).right.sum())
    return Truncated(delta, budget, n, right, success_low(right, n, confidence))


def success_low(right: int, n: int, confidence: float) -> float:
    """Clopper and Pearson's lower bound of a success probability, one-sided."""
    return float(stats.beta.ppf(1 - confidence, right, n - right + 1)) if right else 0.0


def quantiles(operations: NDArray[np.int64], deltas: Sequence[float]) -> list[int]:
    """For each delta the least budget that all but a share of delta finish within."""
    ordered = np.sort(operations)
    return [int(ordered[max(0, math.ceil((1 - d) * len(ordered)) - 1)]) for d in deltas]
