"""Synthetic stages, to calibrate the instrument: their truth is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from algocapture.stats.sequential import THETAS, Floats, SequentialTest, decide, next_look


@dataclass(frozen=True, eq=False)
class Stages:
    """What synthetic stages cost: batches at the last failing and at the first passing look."""

    passed: NDArray[np.bool_]
    low: Floats  # NaN where the first look, before any training, passed
    high: Floats  # NaN where no look passed
    instances: Floats  # evaluation instances, all looks of a stage


def simulate_stages(
    test: SequentialTest,
    delta: float,
    error: Callable[[int], float],
    stages: int,
    generator: np.random.Generator,
) -> Stages:
    """Stages whose instances err as coin flips with probability error(batches trained)."""
    table = _decisions(test, delta)
    low, high = np.full(stages, np.nan), np.full(stages, np.nan)
    instances = np.zeros(stages)
    active = np.arange(stages)
    batches = 0
    for _ in range(test.looks):
        passed, used = _looks(table, test, error(batches), active.size, generator)
        instances[active] += used
        high[active[passed]] = batches
        active = active[~passed]
        low[active] = batches
        if not active.size:
            break
        batches = next_look(batches)
    return Stages(~np.isnan(high), low, high, instances)


def simulate_looks(
    test: SequentialTest, delta: float, error: float, looks: int, generator: np.random.Generator
) -> tuple[NDArray[np.bool_], Floats]:
    """Independent looks at one true error: which passed, and the instances they needed."""
    return _looks(_decisions(test, delta), test, error, looks, generator)


def _looks(
    table: list[NDArray[np.str_]],
    test: SequentialTest,
    error: float,
    looks: int,
    generator: np.random.Generator,
) -> tuple[NDArray[np.bool_], Floats]:
    passed, used = np.zeros(looks, dtype=bool), np.zeros(looks)
    wrong = np.zeros(looks, dtype=np.int64)
    open_ = np.arange(looks)
    drawn = 0
    for decisions in table:
        more = min(test.chunk, test.maximum - drawn)
        drawn += more
        wrong[open_] += generator.binomial(more, error, open_.size)
        answer = decisions[wrong[open_]]
        used[open_] = drawn
        passed[open_[answer == "pass"]] = True
        open_ = open_[answer == "more"]
        if not open_.size:
            break
    return passed, used


def _decisions(test: SequentialTest, delta: float) -> list[NDArray[np.str_]]:
    """After each chunk, the decision for every possible number of errors so far."""
    err = np.log1p(-THETAS)
    hit = np.log1p(THETAS * delta / (1 - delta))
    table = []
    for n in [*range(test.chunk, test.maximum, test.chunk), test.maximum]:
        k = np.arange(n + 1)[:, None]
        table.append(decide(test, n, k * err + (n - k) * hit, k * err**2 + (n - k) * hit**2))
    return table
