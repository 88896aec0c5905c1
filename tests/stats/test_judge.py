"""The verdict on curves whose truth is known."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algocapture.rng import Seed
from algocapture.stats import Curve, Facts, judge
from algocapture.stats.hierarchy import FARTHEST
from algocapture.stats.simulate import World, simulate_curves
from algocapture.stats.verdict import power_of_t

SIZES = [50 * 1.2**i for i in range(20)]
U = np.log(np.array(SIZES) / 50)
GROWTH = {  # extra samples after T0
    "log": lambda u: 1e4 * u,
    "log squared": lambda u: 1e4 * u**2,
    "power": lambda u: 1e4 * np.expm1(0.5 * u) / 0.5,
    "linear": lambda u: 1e3 * np.expm1(u),
    "bounded": lambda u: -1e5 * np.expm1(-0.5 * u),
}


def generator(*names):
    return Seed(4).child("test_judge", *map(str, names)).numpy()


def exact(law, seeds=3):
    """Curves without noise."""
    return [Curve(SIZES, 1e5 + np.round((s + 1) * GROWTH[law](U)), seed=s) for s in range(seeds)]


@pytest.mark.parametrize(
    ("law", "outcome", "kappa"),
    [
        ("log", "captured", 0.0),
        ("bounded", "captured", -0.5),
        ("power", "not captured", 0.5),
        ("linear", "not captured", 1.0),
    ],
)
def test_noiseless_curves_give_their_exponent_and_law(law, outcome, kappa):
    verdict = judge(exact(law))
    assert verdict.outcome == outcome
    assert verdict.exponent == pytest.approx(kappa, abs=0.01)
    assert verdict.interval[0] < kappa < verdict.interval[1]
    assert max(verdict.laws, key=verdict.laws.get) == law
    assert sum(verdict.laws.values()) == pytest.approx(1)


def test_log_squared_growth_shows_in_the_late_over_early_cost_and_in_its_law():
    verdict = judge(exact("log squared"))
    assert verdict.outcome != "captured"
    assert verdict.late_early.ratio > 3
    assert verdict.late_early.acceleration > 0.99
    assert verdict.laws["log squared"] > 0.9


def test_the_guide_is_the_least_squares_line():
    verdict = judge(exact("log", seeds=2))
    assert verdict.guide.cost == pytest.approx(1.5e4, rel=1e-3)
    assert verdict.guide.relative == pytest.approx(0.15, rel=1e-3)


def test_the_bounds_take_the_positive_part_of_the_exponent():
    verdict = judge(exact("power"))
    assert verdict.bounds.kernel == pytest.approx((4, 4), abs=0.1)
    assert verdict.bounds.forward == pytest.approx((7, 7), abs=0.4)
    assert judge(exact("log")).bounds.kernel[0] == 3


@pytest.mark.parametrize("kappa", [-0.3, 0.0, 1.0])
@pytest.mark.parametrize("cumulative", [True, False])
def test_noisy_curves_are_judged_right(kappa, cumulative):
    g = generator("noisy", kappa, cumulative)
    right = "captured" if kappa <= 0 else "not captured"
    world = World(kappa=kappa, cumulative=cumulative, stages=24, noise=0.3)
    outcomes = [judge(simulate_curves(world, g)).outcome for _ in range(12)]
    assert outcomes.count(right) >= 9
    assert set(outcomes) <= {right, "undecided"}


@given(st.floats(1e-3, 1e3), st.floats(0.1, 10), st.permutations(range(4)))
@settings(max_examples=15, deadline=None)
def test_units_and_order_of_seeds_do_not_matter(samples, sizes, order):
    curves = simulate_curves(World(seeds=4, censored=0.5), generator("invariance"))
    scaled = [
        Curve(
            [sizes * t for t in curves[i].sizes],
            [samples * p for p in curves[i].spent],
            spent_low=[
                min(samples * p, samples * q)
                for p, q in zip(curves[i].spent_low, curves[i].spent, strict=True)
            ],
            censored=curves[i].censored,
        )
        for i in order
    ]
    one, two = judge(curves), judge(scaled)
    assert one.outcome == two.outcome
    assert two.exponent == pytest.approx(one.exponent, abs=1e-6)
    assert two.interval == pytest.approx(one.interval, abs=1e-6)


def test_more_confidence_is_a_wider_interval():
    curves = simulate_curves(World(), generator("confidence"))
    widths = [np.ptp(judge(curves, confidence=c).interval) for c in (0.5, 0.8, 0.95, 0.99)]
    assert widths == sorted(widths)


def test_a_margin_above_the_interval_turns_not_captured_into_something_else():
    curves = exact("power")
    assert judge(curves, margin=0.25).outcome == "not captured"
    verdict = judge(curves, margin=0.8)
    assert verdict.outcome == "undecided"
    assert verdict.remark == "slower than the margin, faster than log"


def test_the_resolution_floor_is_named_with_its_bound():
    looks = [1000 + 64 * i for i in range(20)]
    curve = Curve(SIZES, looks, spent_low=[900, *looks[:-1]])
    verdict = judge([curve] * 3)
    assert verdict.outcome == "undecided"
    assert verdict.floor.reached
    assert verdict.floor.share == 1
    assert verdict.floor.bound == pytest.approx(64 / math.log(1.2))
    assert "finer look" in verdict.advice.lower()
    assert "resolution floor" in verdict.sentence(0.05)


def test_sizes_passed_without_any_adaptation_are_captured():
    verdict = judge([Curve(SIZES, [1000.0] * 20)] * 3)
    assert verdict.outcome == "captured"
    assert verdict.exponent == -math.inf
    assert verdict.bounds.kernel == (3, 3)
    assert "without any adaptation" in verdict.sentence()


def test_caveats():
    verdict = judge(
        [Curve(SIZES[:8], 1e5 + GROWTH["log"](U[:8])) for _ in range(2)],
        facts=Facts(delta=0.05, baselines={"repeat": 0.04, "chance": 0.9}, constant_batch=False),
    )
    text = " ".join(verdict.caveats)
    for part in ("Only 2 seeds", "one decade", "'repeat'", "batch", "last failing looks"):
        assert part in text
    assert "chance" not in text


def test_a_shortcut_that_serves_at_the_first_size_only_is_named_once():
    facts = Facts(0.1, {"repeat": 0.4, "rank": 0.05}, {"repeat": 0.09, "rank": 0.06, "mode": 0.1})
    found = [c for c in judge(exact("log"), facts=facts).caveats if "shortcut" in c]
    assert len(found) == 2
    assert "'rank' already meets delta = 0.1 at the largest size (error 0.05)" in found[0]
    assert "'repeat' meets delta = 0.1 at T0 (error 0.09)" in found[1]


def test_a_seed_that_never_left_the_first_size_is_named():
    verdict = judge([*exact("log"), Curve([50], [1e6], censored=True)])
    assert verdict.seeds == 3
    assert "1 of 4 seeds" in verdict.caveats[0]


def test_what_is_not_said_names_laws_that_are_not_told_apart():
    assert "told apart" not in judge(exact("power")).unsaid
    few = simulate_curves(World(stages=8, noise=0.7, censored=0.0), generator("unsaid"))
    verdict = judge(few)
    held = [law for law, weight in verdict.laws.items() if weight > 0.05]
    assert len(held) > 1
    assert all(law in verdict.unsaid for law in held)
    assert f"over {verdict.decades:.2f} decades" in verdict.unsaid
    assert f"sizes above {verdict.sizes[1]:g}" in verdict.unsaid


@pytest.mark.parametrize(("confidence", "shown"), [(0.95, "95%"), (0.999, "99.9%")])
def test_the_sentence_names_its_confidence(confidence, shown):
    assert f"({shown} interval" in judge(exact("log"), confidence=confidence).sentence()


@pytest.mark.parametrize(
    ("ends", "shown"),
    [((3, 3), "T^3"), ((3, 3.456), "T^(3 to 3.46)"), ((4.1, 4.2), "T^(4.1 to 4.2)")],
)
def test_powers_of_t(ends, shown):
    assert power_of_t(ends) == shown


def test_json_has_only_plain_finite_values():
    for curves in (exact("log"), [Curve(SIZES, [1000.0] * 20)] * 2):
        data = json.loads(json.dumps(judge(curves).to_json(), allow_nan=False))
        assert data["outcome"] == "captured"
        assert len(data["per_seed"]) == len(curves)


ONE = Curve(SIZES, 1e5 + GROWTH["log"](U))
CUT = Curve([50, 60], [1000, 2000], censored=True)


@pytest.mark.parametrize(
    ("curves", "fields", "message"),
    [
        ([], {}, "no curves"),
        (None, {}, "curves = None: a list of Curve"),
        (ONE, {}, r"curves = Curve\(.*: a list of Curve"),
        ([SIZES, SIZES], {}, "a list of Curve, one for each seed"),
        ([ONE] * 2, {"margin": math.inf}, "margin = inf"),
        ([ONE] * 2, {"margin": "0.25"}, "margin = '0.25'"),
        ([ONE] * 2, {"confidence": math.nan}, "confidence = nan"),
        ([ONE], {}, "one seed"),
        ([Curve([50], [10])] * 3, {}, "one size"),
        ([CUT] * 3, {}, "every curve is censored"),
        ([ONE, Curve([50], [10])], {}, "only one of the curves"),
        ([ONE, Curve([60, 70], [10, 20])], {}, "different T0"),
        ([ONE, Curve([50, 70], [10, 20], cumulative=False)], {}, "cumulative"),
        ([Curve([50, 60], [10, 20])] * 2, {}, "fewer than three stages"),
        ([ONE] * 2, {"confidence": 1.0}, "confidence = 1.0"),
        ([ONE] * 2, {"margin": 0.0}, "margin = 0.0"),
    ],
)
def test_bad_input(curves, fields, message):
    with pytest.raises(ValueError, match=message):
        judge(curves, **fields)


def whole(spent):
    low = [spent[0] - 32, *(p - 32 if p > spent[0] else p for p in spent[1:])]
    return Curve([4, 5, 6, 7, 8], spent, spent_low=low, cumulative=False)


def test_curves_that_hardly_tell_their_exponent_decide_nothing():
    # A real whole-interval run at the floor. The exponent came out as 681,437: "not captured".
    verdict = judge(
        [
            whole([128, 128, 128, 128, 192]),
            whole([128, 160, 128, 128, 128]),
            whole([224, 288, 288, 288, 288]),
        ]
    )
    assert verdict.outcome == "undecided"
    assert verdict.floor.reached
    assert verdict.interval[0] < 0 < verdict.interval[1]
    assert abs(verdict.exponent) < FARTHEST


@pytest.mark.parametrize("cumulative", [True, False])
def test_all_costs_hidden_at_the_floor_are_undecided(cumulative):
    looks = 1000 + 64 * np.arange(20) if cumulative else np.array([1000] + [1064] * 19)
    low = [900, *looks[:-1]] if cumulative else [900] + [1000] * 19
    verdict = judge([Curve(SIZES, looks, spent_low=low, cumulative=cumulative)] * 3)
    assert (verdict.floor.share, verdict.outcome) == (1, "undecided")


def odd_curve(g, first_size):
    """A legal curve of an unlikely kind: zeros, wild noise, tiny or huge costs and steps."""
    n, step, batch = int(g.integers(1, 20)), g.choice([1.01, 1.2, 2, 10]), g.choice([1, 64, 512])
    cost = np.floor(g.lognormal(g.uniform(-4, 14), g.choice([0, 0.5, 3]), n)) * batch
    cost[g.random(n) < g.choice([0, 0.3, 0.9, 1])] = 0
    cumulative = first_size < 40
    first = 10 ** g.uniform(0, 7)
    spent = first + np.concatenate([[0], np.cumsum(cost) if cumulative else cost])
    starts = spent[:-1] if cumulative else np.full(n, first)
    low = np.maximum(starts, spent[1:] - batch * np.ceil(cost / batch * g.choice([0.1, 1])))
    return Curve(
        first_size * step ** np.arange(n + 1),
        spent,
        spent_low=None if g.random() < 0.3 else [first, *np.minimum(low, spent[1:])],
        censored=g.random() < 0.3,
        cumulative=cumulative,
    )


@pytest.mark.parametrize("first_size", [10.0, 50.0])
def test_every_legal_experiment_has_a_verdict(first_size):
    g = generator("odd", first_size)
    for _ in range(60):
        curves = [odd_curve(g, first_size) for _ in range(g.integers(2, 6))]
        if sum(c.passed for c in curves) < 3:
            continue
        verdict = judge(curves)
        assert verdict.interval[0] <= verdict.exponent <= verdict.interval[1]
        assert abs(verdict.exponent) <= FARTHEST or verdict.floor.free
        json.dumps(verdict.to_json(), allow_nan=False)
        assert verdict.sentence(0.05).endswith(".")
