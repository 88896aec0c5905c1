"""How often is the verdict right, wrong or undecided? Simulated experiments whose truth is known.

Prints the tables of docs/calibration.md.    python -m benchmarks.calibration [replicates]
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from algocapture.rng import Seed
from algocapture.stats.curve import Curve
from algocapture.stats.judge import decide, fit
from algocapture.stats.simulate import World, simulate_curves
from algocapture.stats.verdict import Floor

MARGIN, CONFIDENCE = 0.25, 0.95
ROOT = Seed(0).child("benchmarks", "calibration")
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


def rates(world: World, replicates: int) -> Row:
    """Judge `replicates` experiments of one world."""
    g = ROOT.child(repr(world)).numpy()
    got = np.array([_one(simulate_curves(world, g), world.kappa) for _ in range(replicates)])
    captured, missed, covered, width, floor, plain_captured, plain_missed = got.T
    plain = plain_captured if world.kappa <= 0 else plain_missed
    return Row(
        captured.mean(),
        missed.mean(),
        covered.mean(),
        float(np.median(width)),
        floor.mean(),
        plain.mean(),
    )


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


def table(title: str, worlds: dict[str, World], replicates: int) -> None:
    print(f"\n**{title}** ({replicates:,} experiments a line)\n")
    print(f"| world | {HEAD} |")
    print("|---" * 8 + "|")
    for name, world in worlds.items():
        row = rates(world, replicates).show(world)
        print(f"| {name} | {row} |", flush=True)


def growing(base: World) -> dict[str, World]:
    kappas = (-0.3, 0.0, 0.15, 0.25, 0.5, 1.0, 2.0)
    worlds = {f"kappa {k:g}": replace(base, kappa=k) for k in kappas}
    return worlds | {"log squared": replace(base, law="log squared")}


def main(replicates: int) -> None:
    for seeds in (5, 3):
        for noise, seed_sd in ((0.4, 0.05), (0.7, 0.1)):
            base = World(seeds=seeds, noise=noise, seed_sd=seed_sd)
            table(f"{seeds} seeds, noise {noise}, seed sd {seed_sd}", growing(base), replicates)
    lengths = {
        f"{seeds} seeds, {stages} stages, noise {noise}, seed sd {seed_sd}": World(
            kappa=0.0, seeds=seeds, stages=stages, noise=noise, seed_sd=seed_sd
        )
        for seeds in (5, 3)
        for stages in (10, 15, 24, 29)
        for noise, seed_sd in ((0.4, 0.05), (0.7, 0.1))
    }
    table("Other lengths, kappa 0", lengths, replicates)
    spreads = {f"seed sd {sd:g}": World(kappa=0.0, seed_sd=sd) for sd in (0.0, 0.1, 0.2, 0.4)}
    table("Other spreads over seeds, noise 0.4, 5 seeds, kappa 0", spreads, replicates)
    few = max(replicates // 5, 20)
    table("Whole-interval curves, noise 0.4", growing(World(cumulative=False)), few)
    few = max(replicates // 20, 20)
    for cost in (3.0, 1.0, 0.3):
        worlds = {f"kappa {k:g}": World(kappa=k, cost=cost) for k in (-0.3, 0.0, 0.5, 1.0)}
        table(f"Resolution-limited: a stage near T0 costs {cost:g} batches", worlds, few)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
