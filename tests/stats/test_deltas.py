"""Several deltas together, and what advice depends on."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from algocapture.rng import Seed
from algocapture.stats import Curve, judge, judge_deltas
from algocapture.stats.simulate import World, simulate_curves

SIZES = [50 * 1.2**i for i in range(20)]
U = np.log(np.array(SIZES) / 50)


def curves(kappa, first=1e5, cost=1e4, seeds=3):
    extra = cost * (U if kappa == 0 else np.expm1(kappa * U) / kappa)
    return [Curve(SIZES, first * (1 + s) + extra * (1 + s), seed=s) for s in range(seeds)]


def test_costs_against_delta():
    together = judge_deltas({0.05: curves(0, 1e5, 1e4), 0.1: curves(0, 2.5e4, 5e3)})
    assert list(together.verdicts) == [0.1, 0.05]
    assert together.outcome == "captured"
    assert together.first_cost.power == pytest.approx(2)  # P0 ~ delta^-2
    assert together.cost.power == pytest.approx(1, abs=1e-6)
    row = together.table()[1]
    assert (row["delta"], row["outcome"], row["seeds"]) == (0.05, "captured", 3)
    assert row["C0"] == pytest.approx(1.4e4 / 0.6, rel=1)
    json.dumps(together.to_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("kappas", "outcome", "words"),
    [
        ({0.1: 0.0, 0.05: 1.0}, "not captured", "every sufficiently small delta"),
        ({0.1: 0.0, 0.05: 0.2}, "undecided", "Undecided"),
        ({0.1: 0.0}, "captured", "One delta only"),
    ],
)
def test_the_weakest_delta_decides(kappas, outcome, words):
    together = judge_deltas({d: curves(k) for d, k in kappas.items()})
    assert together.outcome == outcome
    assert words in together.sentence


@pytest.mark.parametrize(
    ("deltas", "message"), [({}, "no deltas"), ({0.0: curves(0)}, "delta = 0")]
)
def test_bad_deltas(deltas, message):
    with pytest.raises(ValueError, match=message):
        judge_deltas(deltas)


def judged(world, *names):
    return judge(simulate_curves(world, Seed(4).child("advice", *names).numpy()))


def test_advice_names_what_binds():
    short = World(kappa=0.0, seeds=3, noise=0.7, stages=12, seed_sd=0.0, censored=0.0)
    assert "wider range" in judged(short, "range").advice.lower()
    spread = [c for kappa in (-0.3, 0.0, 0.3) for c in curves(kappa, seeds=1)]
    assert judge(spread).advice.startswith("More seeds: about")
    wild = [c for kappa in (-0.6, 0.2, 1.0) for c in curves(kappa, seeds=1)]
    assert "times too wide" in judge(wild).advice
    cut = World(kappa=0.1, seeds=4, noise=0.5, stages=20, censored=1.0)
    assert judged(cut, "budget").advice.startswith("A larger budget")
    assert judge(curves(0)).advice.startswith("Decided at this delta")


def test_following_the_advice_narrows_the_interval_to_the_need():
    g = Seed(4).child("advice", "follow").numpy()
    world = World(kappa=0.0, seeds=4, noise=0.5, seed_sd=0.1, stages=14, censored=0.0)
    ratios = []
    while len(ratios) < 12:
        verdict = judge(simulate_curves(world, g))
        seeds = re.search(r"about ([\d,]+) seeds", verdict.advice)
        size = re.search(r"sizes up to about ([\d,]+)", verdict.advice)
        if verdict.outcome != "undecided" or "would tell" not in verdict.advice:
            continue
        stages = math.log(number(size) / 50) / math.log(1.2) if size else world.stages
        better = replace(
            world, seeds=number(seeds) if seeds else world.seeds, stages=math.ceil(stages)
        )
        need = abs(0.25 - verdict.exponent)
        ratios.append(np.ptp(judge(simulate_curves(better, g)).interval) / 2 / need)
    assert 0.5 < np.median(ratios) < 1.3


def number(found):
    return int(found.group(1).replace(",", ""))
