"""Synthetic stages and experiments, to calibrate the instrument: their truth is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from algocapture.stats.curve import Curve
from algocapture.stats.growth import law_shape, log_shape
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


@dataclass(frozen=True)
class World:
    """A synthetic experiment: how cost grows, how noisy it is, and how it is measured."""

    kappa: float = 0.0
    seeds: int = 5
    stages: int = 19  # growth 1.2 over 1.5 decades
    growth: float = 1.2
    noise: float = 0.4  # log-sd of a stage's cost
    seed_sd: float = 0.05  # of kappa over seeds
    cost: float = 30.0  # median cost of a stage near T0, in batches
    cost_sd: float = 0.5  # log-sd of that over seeds
    batch: int = 512
    censored: float = 0.2  # fraction of the curves that end in a stage not passed
    law: Literal["power", "log squared"] = "power"
    cumulative: bool = True


def simulate_curves(world: World, generator: np.random.Generator) -> list[Curve]:
    """One experiment's curves, with costs known to the looks' resolution."""
    return [_simulate_curve(world, generator) for _ in range(world.seeds)]


def _simulate_curve(world: World, generator: np.random.Generator) -> Curve:
    u = np.arange(world.stages + 1, dtype=np.float64) * math.log(world.growth)
    kappa = world.kappa + world.seed_sd * generator.standard_normal()
    shape = np.exp(_log_costs(world, u, kappa)) / math.log(world.growth)
    scale = world.cost * math.exp(world.cost_sd * generator.standard_normal())
    cost = scale * shape * np.exp(world.noise * generator.standard_normal(world.stages))
    ended = generator.random() < world.censored
    if ended:
        stop = int(generator.integers(world.stages // 2, world.stages))
        cost = cost[: stop + 1]
    looks = LOOKS[: int(np.searchsorted(LOOKS, cost.max())) + 1]
    at = np.searchsorted(looks, cost)  # the first look at or after the cost
    high, low = looks[at], looks[np.maximum(at - 1, 0)]
    if ended:
        high[-1] = low[-1] = math.ceil(cost[-1] * generator.uniform(0.3, 1.0))
    first = 20.0 * world.cost
    start = first + np.concatenate(
        [[0.0], np.cumsum(high)[:-1] if world.cumulative else 0 * high[1:]]
    )
    batch = world.batch
    return Curve(
        sizes=(50 * np.exp(u[: len(cost) + 1])).tolist(),
        spent=(batch * np.concatenate([[first], start + high])).tolist(),
        spent_low=(batch * np.concatenate([[first], start + low])).tolist(),
        censored=ended,
        cumulative=world.cumulative,
    )


def _log_costs(world: World, u: Floats, kappa: float) -> Floats:
    curve = Curve(np.exp(u).tolist(), [1.0] * len(u), cumulative=world.cumulative)
    if world.law == "log squared":
        return law_shape(curve, world.law) + kappa * u[1:]
    return log_shape(curve, np.array(kappa))


LOOKS: Floats = np.array(
    list(accumulate(range(399), lambda at, _: next_look(at), initial=0)), float
)
