"""How often is the verdict right, wrong or undecided? Simulated experiments whose truth is known.

Prints the tables of docs/calibration.md, the same on any number of cores.
    OMP_NUM_THREADS=1 python -m benchmarks.calibration [replicates] [root seed]
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from algocapture.rng import Seed
from algocapture.stats.curve import Curve
from algocapture.stats.judge import decide, fit
from algocapture.stats.simulate import World, simulate_curves
from algocapture.stats.verdict import Floor

MARGIN, CONFIDENCE = 0.25, 0.95
ROOT = 8002  # of the published tables; the prior of tau was tuned on 7001
CHUNK = 100  # experiments of one stream
NO_FLOOR = Floor(0.0, 0.0, 0.0)
HEAD = "captured | not captured | undecided | coverage | half-width | at the floor | plain t right"


@dataclass(frozen=True)
class Row:
    """Rates over the replicates of one world."""

    captured: float
    missed: float  # "not captured"
    coverage: float
    width: float  # median half-width
    floor: float
    plain: float  # right outcomes of a t-interval over the seeds' own slopes

    def show(self, world: World) -> str:
        covered = f"{self.coverage:.1%}" if world.law == "power" else "-"
        compared = world.law == "power" and world.cumulative and world.kappa not in (0.15, 0.25)
        plain = f"{self.plain:.1%}" if compared else "-"
        undecided = 1 - self.captured - self.missed
        return (
            f"{self.captured:.1%} | {self.missed:.1%} | {undecided:.1%} | {covered} "
            f"| {self.width:.2f} | {self.floor:.1%} | {plain}"
        )


Task = tuple[World, int, int, int]  # the world, a root seed, the chunk, its experiments


def rates(got: list[list[tuple[float, ...]]], world: World) -> Row:
    """The rates of one world, from its judged chunks."""
    captured, missed, covered, width, floor, plain_captured, plain_missed = np.concatenate(got).T
    plain = plain_captured if world.kappa <= 0 else plain_missed
    return Row(
        captured.mean(),
        missed.mean(),
        covered.mean(),
        float(np.median(width)),
        floor.mean(),
        plain.mean(),
    )


def tasks(world: World, replicates: int, root: int) -> list[Task]:
    starts = range(0, replicates, CHUNK)
    return [(world, root, at // CHUNK, min(CHUNK, replicates - at)) for at in starts]


def judge_chunk(task: Task) -> list[tuple[float, ...]]:
    world, root, chunk, count = task
    g = Seed(root).child("benchmarks", "calibration", repr(world), chunk).numpy()
    return [_one(simulate_curves(world, g), world.kappa) for _ in range(count)]


def _one(curves: Sequence[Curve], kappa: float) -> tuple[float, ...]:
    _, floor, _, posterior = fit(curves)
    low, high = posterior.interval(CONFIDENCE)
    outcome, _ = decide((low, high), MARGIN, floor)
    plain, _ = decide(_plain_t(curves), MARGIN, NO_FLOOR)
    return (
        outcome == "captured",
        outcome == "not captured",
        low <= kappa <= high,
        (high - low) / 2,
        floor.reached,
        plain == "captured",
        plain == "not captured",
    )


def _plain_t(curves: Sequence[Curve]) -> tuple[float, float]:
    """The floor to beat: each seed's least-squares slope, then t over seeds."""
    slopes = []
    for c in curves:
        u, high = c.log_sizes(), np.diff(c.spent)
        known = (high > 0) & (np.arange(len(high)) < c.passed)
        middle, y = ((u[1:] + u[:-1]) / 2)[known], np.log((high / np.diff(u))[known])
        if len(y) >= 2:
            slopes.append(np.polyfit(middle, y, 1)[0])
    if len(slopes) < 2:
        return (-math.inf, math.inf)
    half = stdtrit(len(slopes) - 1, 0.5 + CONFIDENCE / 2) * np.std(slopes, ddof=1)
    half /= math.sqrt(len(slopes))
    return float(np.mean(slopes) - half), float(np.mean(slopes) + half)


Tables = list[tuple[str, dict[str, World], int]]  # title, worlds by name, replicates


def publish(tables: Tables, root: int, pool: Executor) -> None:
    """Judge every world of every table on all cores, and print in order."""
    work = [tasks(w, n, root) for _, worlds, n in tables for w in worlds.values()]
    chunks = pool.map(judge_chunk, [task for of_world in work for task in of_world])
    counts = iter(len(of_world) for of_world in work)
    for title, worlds, replicates in tables:
        print(f"\n**{title}** ({replicates:,} experiments a line)\n")
        print(f"| world | {HEAD} |")
        print("|---" * 8 + "|")
        for name, world in worlds.items():
            row = rates([next(chunks) for _ in range(next(counts))], world)
            print(f"| {name} | {row.show(world)} |", flush=True)


def growing(base: World) -> dict[str, World]:
    kappas = (-0.3, 0.0, 0.15, 0.25, 0.5, 1.0, 2.0)
    worlds = {f"kappa {k:g}": replace(base, kappa=k) for k in kappas}
    return worlds | {"log squared": replace(base, law="log squared")}


def all_tables(replicates: int) -> Tables:
    out: Tables = []
    for seeds in (5, 3):
        for noise, seed_sd in ((0.4, 0.05), (0.7, 0.1)):
            base = World(seeds=seeds, noise=noise, seed_sd=seed_sd)
            title = f"{seeds} seeds, noise {noise}, seed sd {seed_sd}"
            out.append((title, growing(base), replicates))
    lengths = {
        f"{seeds} seeds, {stages} stages, noise {noise}, seed sd {seed_sd}": World(
            kappa=0.0, seeds=seeds, stages=stages, noise=noise, seed_sd=seed_sd
        )
        for seeds in (5, 3)
        for stages in (10, 15, 24, 29)
        for noise, seed_sd in ((0.4, 0.05), (0.7, 0.1))
    }
    out.append(("Other lengths, kappa 0", lengths, replicates))
    spreads = {
        f"{seeds} seeds, seed sd {sd:g}": World(kappa=0.0, seeds=seeds, seed_sd=sd)
        for seeds in (5, 3)
        for sd in (0.0, 0.1, 0.2, 0.4, 0.8)
    }
    out.append(("Other spreads over seeds, noise 0.4, kappa 0", spreads, replicates))
    few = max(replicates // 5, 20)
    out.append(("Whole-interval curves, noise 0.4", growing(World(cumulative=False)), few))
    few = max(replicates // 20, 20)
    for cost in (3.0, 1.0, 0.3):
        worlds = {f"kappa {k:g}": World(kappa=k, cost=cost) for k in (-0.3, 0.0, 0.5, 1.0)}
        title = f"Resolution-limited: a stage near T0 costs {cost:g} batches"
        out.append((title, worlds, few))
    return out


def main(replicates: int = 4000, root: int = ROOT) -> None:
    with ProcessPoolExecutor() as pool:
        publish(all_tables(replicates), root, pool)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
