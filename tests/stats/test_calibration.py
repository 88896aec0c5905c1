"""How often is the verdict right? Simulated experiments; docs/calibration.md has the full run."""

import math

import numpy as np
import pytest

from algocapture.rng import Seed
from algocapture.stats.judge import decide, fit, judge
from algocapture.stats.simulate import World, simulate_curves

QUIET, LOUD = {"noise": 0.4, "seed_sd": 0.05}, {"noise": 0.7, "seed_sd": 0.1}


def judged(world, replicates):
    """Rates of right and of wrong outcomes, and the interval's coverage."""
    g = Seed(4).child("test_calibration", repr(world)).numpy()
    right = wrong = covered = 0
    good, bad = ("captured", "not captured")[:: 1 if world.kappa <= 0 else -1]
    for _ in range(replicates):
        _, floor, _, posterior = fit(simulate_curves(world, g))
        low, high = posterior.interval(0.95)
        outcome, _ = decide((low, high), 0.25, floor)
        right, wrong = right + (outcome == good), wrong + (outcome == bad)
        covered += low <= world.kappa <= high
    return np.array([right, wrong, covered]) / replicates


def slack(rate, replicates):
    return 4 * math.sqrt(rate * (1 - rate) / replicates)  # z < 4, at most 24 comparisons


def check(world, replicates, least):
    right, wrong, covered = judged(world, replicates)
    assert right >= least - slack(least, replicates)
    assert wrong <= 0.05 + slack(0.05, replicates)
    low, high = (0.93, 0.97) if world.seeds == 5 else (0.92, 0.98)
    assert low - slack(low, replicates) <= covered <= high + slack(high, replicates)


@pytest.mark.parametrize(
    ("kappa", "noise", "least"),
    [(0.0, QUIET, 0.9), (0.5, QUIET, 0.9), (-0.3, LOUD, 0.9), (0.0, LOUD, 0.45)],
)
def test_five_seeds_judge_right(kappa, noise, least):
    check(World(kappa=kappa, **noise), 50, least)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("noise", [QUIET, LOUD])
@pytest.mark.parametrize("kappa", [-0.3, 0.0, 0.5, 1.0, 2.0])
def test_calibration(seeds, noise, kappa):
    close = kappa in (0.0, 0.5)
    least = {3: 0.0, 5: 0.45 if close and noise is LOUD else 0.9}[seeds]
    check(World(kappa=kappa, seeds=seeds, **noise), 400, least)


def test_costs_below_the_resolution_never_speak_for_capture():
    # A stage near T0 costs a third of a batch and the cost accelerates unseen.
    g = Seed(4).child("test_calibration", "floor").numpy()
    world = World(kappa=0.5, cost=0.3, stages=12)
    for _ in range(4):
        _, floor, _, posterior = fit(simulate_curves(world, g))
        assert floor.reached
        assert decide(posterior.interval(0.95), 0.25, floor)[0] != "captured"


@pytest.mark.parametrize("kappa", [0.0, 0.5])
def test_late_over_early_covers(kappa):
    g = Seed(4).child("test_calibration", "late", str(kappa)).numpy()
    middle = (np.arange(19) + 0.5) * math.log(1.2)
    truth = math.exp(kappa * (middle[-6:].mean() - middle[:6].mean()))  # thirds of 19 stages
    inside = 0
    for _ in range(60):
        low, high = judge(simulate_curves(World(kappa=kappa, censored=0.0), g)).late_early.interval
        inside += low <= truth <= high
    assert inside / 60 >= 0.95 - slack(0.95, 60)
