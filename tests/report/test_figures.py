"""Figures draw what is given: artists are read back and compared with the data."""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.lines import Line2D

from algocapture.report import (
    Summary,
    figure_cost,
    figure_curve,
    figure_error,
    figure_exponent,
    figure_unadapted,
    rows,
    summarise,
)
from algocapture.report.style import MARKERS, SERIES, inline, short, to_bytes
from algocapture.stats import Curve
from tests.report.runs import world, write_run

FIGURES = [figure_curve, figure_cost, figure_error, figure_exponent, figure_unadapted]
SIZES = [50, 60, 72, 86, 103, 124, 149]


def summary_of(folder: Path, curves: list[Curve]) -> Summary:
    return summarise(write_run(folder, curves))


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    return summary_of(tmp_path_factory.mktemp("runs") / "run", world(0.5, 3, censored=0.6))


def lines(figure, gid: str) -> list[Line2D]:
    return [line for line in figure.axes[0].get_lines() if line.get_gid() == gid]


def exact(exponent: float, cumulative: bool = True, cost: float = 2e6) -> Curve:
    """P - P0 = c ((T/T0)^k - 1)/k, known exactly: the definition of the exponent."""
    ratio = np.array(SIZES) / SIZES[0]
    growth = np.log(ratio) if exponent == 0 else (ratio**exponent - 1) / exponent
    spent = (1e7 + np.round(cost * growth)).tolist()
    return Curve(SIZES, spent, spent_low=spent, cumulative=cumulative)


def test_curve_is_spent_over_p0(summary: Summary) -> None:
    figure = figure_curve([summary])
    drawn = lines(figure, "seed")
    curves = summary.curves()
    assert len(drawn) == len(curves) == 5
    for line, curve in zip(drawn, curves, strict=True):
        assert np.array_equal(line.get_xdata(), curve.sizes)
        assert np.array_equal(line.get_ydata(), np.array(curve.spent) / curve.spent[0])
    ends = {(c.sizes[-1], c.spent[-1] / c.spent[0]) for c in curves if c.censored}
    marked = [line for line in figure.axes[0].get_lines() if line.get_marker() == "^"]
    assert {(line.get_xdata()[0], line.get_ydata()[0]) for line in marked} == ends
    assert ends


def test_mean_stops_where_a_seed_stops(summary: Summary) -> None:
    (mean,) = lines(figure_curve([summary]), "mean")
    curves = summary.curves()
    shared = min(c.passed for c in curves) + 1
    relative = [np.array(c.spent[:shared]) / c.spent[0] for c in curves]
    assert list(mean.get_xdata()) == list(curves[0].sizes[:shared])
    assert np.allclose(mean.get_ydata(), np.mean(relative, axis=0), rtol=1e-12)


def test_guide_is_the_line_of_an_exact_logarithm(tmp_path: Path) -> None:
    (line,) = lines(figure_curve([summary_of(tmp_path / "run", [exact(0.0)] * 3)]), "guide")
    expected = 1 + 0.2 * np.log(np.asarray(line.get_xdata()) / 50)
    assert np.allclose(line.get_ydata(), expected, rtol=1e-6)


@pytest.mark.parametrize("scale", ["log", "linear"])
def test_axes_of_sizes(summary: Summary, scale: str) -> None:
    ax = figure_curve([summary], scale).axes[0]
    assert ax.get_xscale() == scale
    assert ax.get_yscale() == "linear"


@pytest.mark.parametrize("cumulative", [True, False])
@pytest.mark.parametrize("exponent", [-0.5, 0.0, 1.0])
def test_law_of_exact_costs(tmp_path: Path, exponent: float, cumulative: bool) -> None:
    """Its scale is found back, and whole-interval costs are averages of the local cost."""
    summary = summary_of(tmp_path / "run", [exact(exponent, cumulative)] * 2)
    sizes = np.array([55.0, 80.0, 140.0])
    u = np.log(sizes / 50)
    local = 2e6 * np.exp(exponent * u)
    if not cumulative:
        local = 2e6 * (u if exponent == 0 else np.expm1(exponent * u) / exponent) / u
    assert np.allclose(rows.law(summary, exponent, list(sizes)), local, rtol=1e-5)


def test_cost_is_per_log_size(summary: Summary) -> None:
    figure = figure_cost([summary])
    at, value = [], []
    for curve in summary.curves():
        low = curve.spent_low or curve.spent
        for i in range(1, curve.passed + 1):
            ends = low[i] - curve.spent[i - 1], curve.spent[i] - curve.spent[i - 1]
            if ends[0] > 0:
                at.append(math.sqrt(curve.sizes[i - 1] * curve.sizes[i]))
                width = math.log(curve.sizes[i] / curve.sizes[i - 1])
                value.append(math.sqrt(ends[0] * ends[1]) / width)
    (points,) = lines(figure, "within")
    assert np.allclose(points.get_xdata(), at, rtol=1e-12)
    assert np.allclose(points.get_ydata(), value, rtol=1e-12)
    (above,) = lines(figure, "above")
    assert len(above.get_xdata()) == sum(c.censored for c in summary.curves()) > 0


def test_stages_within_one_look_point_down(tmp_path: Path) -> None:
    curve = Curve([50, 60, 72], [9000, 9512, 9512], spent_low=[8500, 9000, 9512])
    (below,) = lines(figure_cost([summary_of(tmp_path / "run", [curve])]), "below")
    assert np.allclose(below.get_ydata(), 512 / np.log(1.2), rtol=1e-12)  # one look, at most


def test_errors_are_those_of_the_last_looks(summary: Summary) -> None:
    figure = figure_error([summary])
    stages = [stage for of in summary.stages.values() for stage in of]
    for outcome, gid in (("passed", "passed"), ("censored", "not passed")):
        some = [stage for stage in stages if stage["outcome"] == outcome]
        (points,) = lines(figure, gid)
        assert list(points.get_xdata()) == [stage["size"] for stage in some]
        assert list(points.get_ydata()) == [stage["looks"][-1]["error"] for stage in some]
    (delta,) = lines(figure, "delta")
    assert set(delta.get_ydata()) == {0.05}
    assert len(lines(figure, "baseline")) == 2


def test_unadapted_is_the_mean_of_first_looks_and_probes(summary: Summary) -> None:
    first, probes = lines(figure_unadapted([summary]), "unadapted")
    held = summary.stages.values()
    for at, error in zip(first.get_xdata(), first.get_ydata(), strict=True):
        looks = [s["looks"][0]["error"] for of in held for s in of[1:] if s["size"] == at]
        assert error == pytest.approx(np.mean(looks), rel=1e-12)
    for at, error in zip(probes.get_xdata(), probes.get_ydata(), strict=True):
        found = [p["error"] for of in held for s in of for p in s["probes"] if p["size"] == at]
        assert error == pytest.approx(np.mean(found), rel=1e-12)


def test_exponents_are_the_verdicts(summary: Summary) -> None:
    verdict = summary.verdict()
    points = [float(line.get_xdata()[0]) for line in lines(figure_exponent([summary]), "exponent")]
    assert points == [*(fit.exponent for fit in verdict.per_seed), verdict.exponent]


def test_nothing_of_an_exponent_is_cut_off(tmp_path: Path) -> None:
    wide = summary_of(tmp_path / "wide", world(0.2, 5, stages=6, noise=0.9))
    low, high = figure_exponent([wide]).axes[0].get_xlim()
    assert all(low < row["low"] < row["high"] < high for row in rows.exponent_rows(wide))


def test_the_relative_cost_begins_at_one(tmp_path: Path) -> None:
    """Even where P0 is known only between two looks: it is what is divided by."""
    curve = Curve([50, 60, 72], [9000, 9512, 10024], spent_low=[8500, 9256, 9768])
    ax = figure_curve([summary_of(tmp_path / "run", [curve])]).axes[0]
    ends = [path.vertices[:, 1] for bars in ax.collections for path in bars.get_paths()]
    assert min(end.min() for end in ends) >= 1


def test_triangles_mean_bounds_and_no_run() -> None:
    assert not {"^", "v"} & set(MARKERS)


@pytest.mark.parametrize("draw", FIGURES)
def test_several_runs_in_one_figure(tmp_path: Path, summary: Summary, draw) -> None:
    other = summary_of(tmp_path / "$other_{", world(0.0, 4, seeds=3))
    figure = draw([summary, other])
    inline(figure, "x", "<y>")
    texts = [t.get_text().strip() for t in figure.legends[0].get_texts()]
    texts += [t.get_text() for t in figure.axes[0].get_yticklabels()]
    assert any(text.startswith("$other_{") for text in texts)


SVG = """
import sys, hashlib
from algocapture.report import figure_curve, summarise
from algocapture.report.style import to_bytes
print(hashlib.sha256(to_bytes(figure_curve([summarise(sys.argv[1])]), "svg")).hexdigest())
assert "matplotlib.pyplot" not in sys.modules
assert "torch" not in sys.modules
"""


def test_svg_is_the_same_bytes_in_another_process(summary: Summary) -> None:
    with matplotlib.rc_context({"font.size": 20, "svg.hashsalt": "x", "lines.linewidth": 9}):
        before = dict(matplotlib.rcParams)
        here = hashlib.sha256(to_bytes(figure_curve([summary]), "svg")).hexdigest()
        assert dict(matplotlib.rcParams) == before
    done = subprocess.run(
        [sys.executable, "-c", SVG, str(summary.path)],
        env=os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == here


def test_numbers_are_short() -> None:
    shown = [short(n) for n in (0, 7.25, 999, 1000, 9999, 12_300, 999_999, 1_000_000, 2.5e9)]
    assert shown == ["0", "7.25", "999", "1k", "10k", "12.3k", "1M", "1M", "2.5G"]


# Machado, Oliveira and Fernandes (2009), complete protanopia and deuteranopia, linear RGB.
PROTAN = [
    0.152286,
    1.052583,
    -0.204868,
    0.114503,
    0.786281,
    0.099216,
    -0.003882,
    -0.048116,
    1.051998,
]
DEUTAN = [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881]


@pytest.mark.parametrize("blind", [np.eye(3), PROTAN, DEUTAN])
def test_colours_are_told_apart(blind: list[float]) -> None:
    """CIELAB distances of all pairs: 2.3 is just noticeable, ours are at least four times that."""
    seen = [lab(np.reshape(blind, (3, 3)) @ linear(colour)) for colour in SERIES]
    gaps = [np.linalg.norm(a - b) for i, a in enumerate(seen) for b in seen[:i]]
    assert min(gaps) > 9.2


def linear(colour: str) -> np.ndarray:
    srgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    white = np.array([0.9505, 1.0, 1.089])
    f = np.cbrt(np.array(to_xyz) @ np.clip(rgb, 1e-4, 1) / white)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])
