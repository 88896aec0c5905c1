"""Several runs in several panels: the layout of the paper's Figure 1, and what its page says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algocapture.report import rows
from algocapture.report.figures import Scale
from algocapture.report.rows import Row
from algocapture.report.style import GRID, INK, MARKERS, SERIES, log_sizes, short, styled
from algocapture.report.summary import Summary
from algocapture.stats import judge
from algocapture.stats.evidence import guide

COLUMNS = 3
MOST_TICKS = 4
SMALL = {"font.size": 8, "axes.titlesize": 8.5, "legend.fontsize": 7}


@dataclass(frozen=True)
class Panel:
    """Runs that share axes: by their means with one SD (`thin` False), or seeds and means."""

    letter: str
    title: str
    runs: Sequence[tuple[str, Summary]]  # label and run
    scale: Scale = "log"
    thin: bool = False


@styled
def figure_panels(panels: Sequence[Panel]) -> Figure:
    """P/P0 against T, a panel each; dashed: least squares of 1 + C log(T/T0), to guide the eye."""
    matplotlib.rcParams.update(SMALL)
    height = -(-len(panels) // COLUMNS)
    figure = Figure(figsize=(7.2, 2.5 * height), layout="constrained")
    for place, panel in enumerate(panels):
        ax = figure.add_subplot(height, COLUMNS, place + 1)
        ax.set_title(f"({panel.letter}) {panel.title}")
        ax.grid(axis="y", color=GRID)
        ax.tick_params(length=2)
        for number, (label, run) in enumerate(panel.runs):
            _draw(ax, run, label, SERIES[number], MARKERS[number], panel.thin)
        sizes = [r["size"] for _, run in panel.runs for r in rows.curve_rows(run)]
        if panel.scale == "log":
            log_sizes(ax, sizes)
            ticks = [tick for tick in ax.get_xticks() if min(sizes) <= tick <= max(sizes)]
            if len(ticks) > MOST_TICKS:
                ticks = [tick for tick in ticks if f"{tick:e}"[0] == "1"]
            ax.set_xticks(ticks, [short(tick) for tick in ticks])
        ax.set_xlabel("size T")
        if place % COLUMNS == 0:
            ax.set_ylabel("relative cost P / P₀")
        if any(label for label, _ in panel.runs):
            ax.legend(loc="upper left", handlelength=1.6)
    return figure


def _draw(ax: Axes, run: Summary, label: str, colour: str, marker: str, thin: bool) -> None:
    """A triangle: not passed, the cost is at least that."""
    curves = rows.curve_rows(run)
    for seed in sorted({row["seed"] for row in curves}):
        held = [row for row in curves if row["seed"] == seed]
        x, y = ([row[key] for row in held] for key in ("size", "relative"))
        if thin:
            ax.plot(x, y, color=colour, lw=0.7, alpha=0.6)
        if held[-1]["censored"]:
            ax.plot(x[-1:], y[-1:], "^", color=colour, mfc="none", ms=5)
    means = [row for row in rows.mean_rows(run) if row["all"]]
    x, y, sd = ([row[key] for row in means] for key in ("size", "mean", "sd"))
    ax.plot(x, y, color=colour, lw=1.8, marker=marker, ms=3, label=label)
    if not thin:
        ax.errorbar(x, y, yerr=sd, fmt="none", ecolor=colour, elinewidth=0.8, capsize=1.5)
    passed = [curve for curve in run.curves() if curve.passed > 0]
    if passed:
        sizes = np.geomspace(passed[0].sizes[0], max(c.sizes[-1] for c in passed), 60)
        line = 1 + guide(passed).relative * np.log(sizes / sizes[0])
        ax.plot(sizes, line, color=INK if not label else colour, lw=0.8, ls=(0, (4, 3)))


def left_out(run: Summary) -> list[Row]:
    """The verdict without each seed: whether it hangs on one of them."""
    curves = run.curves()
    margin, confidence = run.identity["margin"], run.identity["confidence"]
    found: list[Row] = []
    for curve in curves if len(curves) > 2 else []:
        rest = [other for other in curves if other is not curve]
        try:
            verdict = judge(rest, margin, confidence, run.facts())
        except ValueError as error:
            found.append({"seed": curve.seed, "outcome": str(error)})
            continue
        low, high = verdict.interval
        row: Row = {"seed": curve.seed, "outcome": verdict.outcome}
        found.append(row | {"exponent": verdict.exponent, "low": low, "high": high})
    return found


def in_words(without: Sequence[Row]) -> str:
    """The outcomes without each seed, counted."""
    counted = Counter(row["outcome"] for row in without)
    return ", ".join(f"{outcome} {n} of {len(without)}" for outcome, n in counted.most_common())
