"""Curves: intervals of cost, and input that cannot be a curve."""

import math

import numpy as np
import pandas
import pytest
import torch

from algocapture.stats import Curve
from algocapture.stats.curve import resolution

SIZES = [50, 60, 72]


def test_costs_are_intervals_from_the_start_of_each_stage():
    curve = Curve(SIZES, [1000, 1100, 1150], spent_low=[900, 1050, 1150], censored=False)
    low, high = curve.costs(resolution=10)
    assert low.tolist() == [50, 50]
    assert high.tolist() == [100, 50]


def test_a_stage_that_cost_nothing_is_known_to_be_below_the_resolution():
    low, high = Curve(SIZES, [1000, 1000, 1040]).costs(resolution=10)
    assert low.tolist() == [0, 40]
    assert high.tolist() == [10, 40]


def test_a_censored_stage_is_bounded_from_below_only():
    curve = Curve(SIZES, [1000, 1100, 1400], spent_low=[900, 1050, 1390], censored=True)
    low, high = curve.costs(resolution=10)
    assert low.tolist() == [50, 300]
    assert high.tolist() == [100, math.inf]
    assert curve.passed == 1


def test_whole_interval_costs_start_from_the_base_model():
    curve = Curve(SIZES, [1000, 1300, 1200], cumulative=False)
    assert curve.costs(1.0)[1].tolist() == [300, 200]


def test_resolution_is_the_least_positive_cost_or_look():
    seen = Curve(SIZES, [1000, 1640, 1640], spent_low=[900, 1512, 1640])
    assert resolution([seen]) == 128
    curves = [Curve(SIZES, [1000, 1000, 1064]), Curve(SIZES, [900, 1028, 1092])]
    assert resolution(curves) == 64
    assert resolution([Curve(SIZES, [7, 7, 7])]) == 1


def test_json_builds_the_same_curve():
    curve = Curve(np.array(SIZES), np.array([1, 2, 3]), spent_low=[1, 1, 2], seed=3)
    assert Curve(**curve.to_json()) == curve


def test_sequences_of_any_kind_are_the_same_curve():
    kinds = (list, tuple, np.array, torch.tensor, pandas.Series, iter_of_ints)
    curves = {Curve(kind(SIZES), kind([1000, 1010, 2**70 // 2**58])) for kind in kinds}
    assert len(curves) == 1


def iter_of_ints(values):
    return [np.int64(value) for value in values]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sizes": []}, "sizes is empty"),
        ({"sizes": [50, 60]}, "sizes has 2 entries and spent 3"),
        ({"sizes": [50, 60, 60]}, "positive and increasing"),
        ({"sizes": [0, 60, 70]}, "positive and increasing"),
        ({"sizes": [50, 60, math.nan]}, r"sizes\[2\] = nan"),
        ({"spent": [1000, -5, 1020]}, r"spent\[1\] = -5"),
        ({"spent": [1000, math.inf, 1020]}, r"spent\[1\] = inf"),
        ({"spent": [0, 10, 20]}, "P0 must be positive"),
        ({"spent": [1000, 1020, 1010]}, r"falls from 1020\.0 to 1010\.0 at size 72"),
        ({"spent": [1000, 500, 1200], "cumulative": False}, "every entry includes P0"),
        ({"spent_low": [1, 2]}, "spent_low has 2 entries"),
        ({"spent_low": [900, 1011, 1020]}, r"spent_low\[1\] = 1011\.0 is above"),
        ({"sizes": "abc"}, "sizes = 'abc': a sequence of numbers"),
        ({"sizes": None}, "sizes = None: a sequence"),
        ({"sizes": {50, 60, 72}}, "a sequence of numbers"),
        ({"sizes": ["50", "60", "72"]}, r"sizes\[0\] = '50': a number"),
        ({"sizes": [50, [60], 72]}, r"sizes\[1\] = \[60\]: a number"),
        ({"spent": [True, True, True]}, r"spent\[0\] = True: a number"),
        ({"spent": [1, 2, 10**400]}, r"^spent\[2\] = 10+\.\.\.0+: not in \[0, 1e\+300\)$"),
        ({"censored": "no"}, "censored = 'no': True or False"),
        ({"censored": math.nan}, "censored = nan"),
        ({"cumulative": None}, "cumulative = None"),
    ],
)
def test_bad_curves(fields, message):
    with pytest.raises(ValueError, match=message):
        Curve(**({"sizes": SIZES, "spent": [1000, 1010, 1020]} | fields))
