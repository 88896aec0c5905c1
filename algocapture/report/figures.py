"""The figures of one run, or of several to compare. Each function returns a matplotlib Figure.

    figure_curve([summarise("runs/induction")]).savefig("curve.pdf")

Nothing here touches matplotlib's global state: no pyplot, no backend, the user's rcParams intact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from algocapture.report import rows
from algocapture.report.rows import Row
from algocapture.report.style import (
    DASHES,
    INK,
    MARKERS,
    MUTED,
    SERIES,
    axes,
    legend,
    log_counts,
    log_sizes,
    styled,
)
from algocapture.report.summary import Summary
from algocapture.stats.evidence import guide

Scale = Literal["log", "linear"]
Entry = tuple[Line2D | Patch, str]
MOST_BASELINES = 6  # drawn; the page's table has all
CROWDED = 300  # points: beyond these, markers and intervals of single stages are left out
DENSE = 1500  # points: beyond these each stands for all seeds, or the page outgrows a megabyte


@styled
def figure_curve(summaries: Sequence[Summary], scale: Scale = "log") -> Figure:
    """Relative cost P/P0 against T: thin seeds, thick mean with one SD, the guide C log(T/T0)."""
    figure, ax = axes("Relative cost P / P₀")
    entries: list[Entry] = []
    crowded = _points(summaries) > CROWDED
    for i, (s, name) in enumerate(zip(summaries, rows.names(summaries), strict=True)):
        colour = SERIES[i % len(SERIES)]
        for held in _by(rows.curve_rows(s), "seed"):
            _seed_curve(ax, held, colour, crowded)
        mean = _mean(ax, rows.mean_rows(s), i, band=len(summaries) <= 3)
        if len(summaries) > 1 or len(s.curves()) == 1:
            entries.append((mean, name if len(summaries) > 1 else "one seed"))
        else:
            seed = Line2D([], [], color=colour, lw=1, alpha=0.65)
            entries += [(seed, "one seed"), (mean, "mean ± SD of seeds")]
        entries += _guide(ax, s, colour, alone=len(summaries) == 1)
    if any(row["censored"] for s in summaries for row in rows.curve_rows(s)):
        entries.append((_mark("^"), "not passed: at least"))
    _sizes(ax, [row["size"] for s in summaries for row in rows.curve_rows(s)], scale)
    legend(figure, entries)
    return figure


def _seed_curve(ax: Axes, held: list[Row], colour: str, crowded: bool) -> None:
    sizes, relative = _columns(held, "size", "relative")
    ax.plot(sizes, relative, color=colour, lw=1, alpha=0.65, gid="seed")
    if not crowded:
        low = _column(held, "relative_low")  # at T0 it is 1 by definition
        ax.vlines(sizes[1:], low[1:], relative[1:], color=colour, lw=1.6, alpha=0.45)
    if held[-1]["censored"]:
        ax.plot(sizes[-1:], relative[-1:], "^", color=colour, mfc="none", ms=7, mew=1.2)


def _mean(ax: Axes, held: list[Row], index: int, band: bool) -> Line2D:
    """As far as every seed has passed: a mean of those left would favour the cheaper ones."""
    colour, marker = SERIES[index % len(SERIES)], MARKERS[index % len(MARKERS)]
    dashes = DASHES[index // len(SERIES) % len(DASHES)]
    sizes, mean, sd = _columns(held, "size", "mean", "sd")
    whole = sum(row["all"] for row in held)
    if band and whole > 1 and held[0]["seeds"] > 1:
        ax.fill_between(
            sizes[:whole], (mean - sd)[:whole], (mean + sd)[:whole], color=colour, alpha=0.16, lw=0
        )
    (line,) = ax.plot(
        sizes[:whole], mean[:whole], color=colour, lw=2.4, ls=dashes, marker=marker, ms=4,
        gid="mean",
    )  # fmt: skip
    return line


def _guide(ax: Axes, s: Summary, colour: str, alone: bool) -> list[Entry]:
    curves = [c for c in s.curves() if c.passed > 0]
    if not curves:
        return []
    slope = guide(curves).relative
    largest = max(c.sizes[-1] for c in curves)
    sizes = np.geomspace(curves[0].sizes[0], largest, 60)
    line = 1 + slope * np.log(sizes / sizes[0])
    (drawn,) = ax.plot(
        sizes, line, color=INK if alone else colour, lw=1.1, ls=(0, (5, 3)), gid="guide"
    )
    return [(drawn, f"1 + {slope:.2g} log(T/T₀)")] if alone else []


@styled
def figure_cost(summaries: Sequence[Summary]) -> Figure:
    """Cost per unit of log T against T with the fitted law: flat is c log T, falling is cheaper."""
    figure, ax = axes("Samples per unit of log T")
    entries: list[Entry] = []
    seen: set[str] = set()
    sizes: list[float] = []
    for i, (s, name) in enumerate(zip(summaries, rows.names(summaries), strict=True)):
        held = rows.cost_rows(s)
        if is_dense(summaries):
            held = _over_seeds([r for r in held if r["known"] == "within"], "size", "low", "high")
        colour, marker = SERIES[i % len(SERIES)], MARKERS[i % len(MARKERS)]
        _costs(ax, held, colour, marker, _points(summaries))
        seen |= {row["known"] for row in held}
        sizes += [row["size"] for row in held] + [row["size_from"] for row in held]
        line = _law(ax, s, i)
        if len(summaries) > 1:
            entries.append((line or _mark(marker, colour, filled=True), name))
            continue
        entries.append((_mark(marker, colour, filled=True), "one stage of a seed"))
        if line:
            exponent = s.verdict().exponent
            entries.append((line, f"law, κ = {exponent:.2f}".replace("-", "\u2212")))
    entries += [(_mark("v"), "at most one look")] if "below" in seen else []
    entries += [(_mark("^"), "not passed: at least")] if "above" in seen else []
    if sizes:
        log_sizes(ax, sizes)
        log_counts(ax, [v for v in (ax.dataLim.minposy, ax.dataLim.y1) if v > 0])
    legend(figure, entries)
    return figure


def _costs(ax: Axes, held: list[Row], colour: str, marker: str, points: int) -> None:
    """Points at the middle of a known interval, triangles at a bound of an unknown one."""
    kinds: dict[str, tuple[str, Callable[[Row], float], bool]] = {
        "within": (marker, lambda r: math.sqrt(r["low"] * r["high"]), True),
        "below": ("v", lambda r: float(r["high"]), False),
        "above": ("^", lambda r: max(float(r["low"]), 1e-9), False),
    }
    for kind, (shape, value, filled) in kinds.items():
        some = [r for r in held if r["known"] == kind]
        at = [math.sqrt(r["size_from"] * r["size"]) for r in some]
        ax.plot(
            at, [value(r) for r in some], ls="", marker=shape, ms=4 if filled else 5.5, alpha=0.6,
            color=colour, mfc=colour if filled else "none", mec=colour, mew=0 if filled else 1,
            gid=kind,
        )  # fmt: skip
        if filled and points <= CROWDED:
            low, high = _columns(some, "low", "high")
            ax.vlines(at, low, high, color=colour, lw=1, alpha=0.35)


def _law(ax: Axes, s: Summary, index: int) -> Line2D | None:
    verdict = s.judged[0]
    if verdict is None:
        return None
    colour, dashes = SERIES[index % len(SERIES)], DASHES[index // len(SERIES) % len(DASHES)]
    sizes = list(np.geomspace(*verdict.sizes, 61))[1:]
    centre, *ends = (rows.law(s, k, sizes) for k in (verdict.exponent, *verdict.interval))
    if not centre or not all(ends):
        return None
    low, high = np.min([centre, *ends], axis=0), np.max([centre, *ends], axis=0)
    ax.fill_between(sizes, low, high, color=colour, alpha=0.16, lw=0)
    (line,) = ax.plot(sizes, centre, color=colour, lw=2.2, ls=dashes, gid="law")
    return line


@styled
def figure_error(summaries: Sequence[Summary]) -> Figure:
    """The error at which each size was passed, with its interval, delta and the shortcuts."""
    figure, ax = axes("Error at the last look (square-root axis)")
    entries: list[Entry] = []
    sizes: list[float] = []
    shown = [rows.error_rows(s) for s in summaries]
    if is_dense(summaries):
        shown = [_over_seeds(held, "passed", "error", "low", "high") for held in shown]
    for i, (held, name) in enumerate(zip(shown, rows.names(summaries), strict=True)):
        colour, marker = SERIES[i % len(SERIES)], MARKERS[i % len(MARKERS)]
        beside = 1 + 0.03 * (i - (len(summaries) - 1) / 2)  # runs stand side by side
        for passed in (True, False):
            some = [r for r in held if r["passed"] is passed]
            at, error, low, high = _columns(some, "size", "error", "low", "high")
            ax.plot(at * beside, error, ls="", marker=marker if passed else "^", ms=4.5,
                    color=colour, mfc=colour if passed else "none", mew=0 if passed else 1,
                    alpha=0.75, gid="passed" if passed else "not passed")  # fmt: skip
            if len(summaries) == 1 and _points(summaries) <= CROWDED:
                ax.vlines(at, low, high, color=colour, lw=1, alpha=0.3)
        sizes += [r["size"] for r in held]
        label = name if len(summaries) > 1 else "passed, interval"
        entries.append((_mark(marker, colour, filled=True), label))
    if any(not r["passed"] for held in shown for r in held):
        entries.append((_mark("^"), "not passed"))
    entries += _deltas(ax, summaries)
    if len(summaries) == 1:
        entries += _baselines(ax, summaries[0])
    _errors(ax, sizes)
    legend(figure, entries)
    return figure


def _baselines(ax: Axes, s: Summary) -> list[Entry]:
    entries: list[Entry] = []
    nearest = sorted(_by(rows.baseline_rows(s), "baseline"), key=lambda held: held[-1]["error"])
    for i, held in enumerate(nearest[:MOST_BASELINES]):
        colour = SERIES[1:][i % (len(SERIES) - 1)]
        sizes, error = _columns(held, "size", "error")
        (line,) = ax.plot(
            sizes, error, color=colour, lw=1.3, ls=DASHES[1 + i % 2], gid="baseline",
            marker="_" if len(sizes) == 1 else "", ms=12,
        )  # fmt: skip
        entries.append((line, rows.plain(held[0]["baseline"], 24)))
    return entries


@styled
def figure_unadapted(summaries: Sequence[Summary]) -> Figure:
    """Error at sizes that the model has not been adapted to: what it does by itself."""
    figure, ax = axes("Error without adaptation (square-root axis)")
    entries: list[Entry] = []
    sizes: list[float] = []
    several = len(summaries) > 1
    for i, (s, name) in enumerate(zip(summaries, rows.names(summaries), strict=True)):
        for j, (label, line) in enumerate(_unadapted(s)):
            # Several runs: a colour for each run and a marker for each question; else both.
            colour, marker = SERIES[(i if several else j) % len(SERIES)], MARKERS[j % len(MARKERS)]
            at, mean, low, high = (np.array(column) for column in zip(*line, strict=True))
            (drawn,) = ax.plot(
                at, mean, color=colour, lw=1.6, marker=marker, ms=4, ls=DASHES[j % len(DASHES)],
                gid="unadapted",
            )  # fmt: skip
            ax.fill_between(at, low, high, color=colour, alpha=0.14, lw=0)
            entries.append((drawn, f"{name}: {label}" if several else label))
            sizes += list(at)
    entries += _deltas(ax, summaries)
    _errors(ax, sizes)
    legend(figure, entries)
    return figure


def _unadapted(s: Summary) -> list[tuple[str, list[tuple[float, float, float, float]]]]:
    """Lines of (size, mean over seeds, least, greatest): a kind of question, or one evaluation."""
    lines = []
    for held in _by(rows.unadapted_rows(s), "kind"):
        evaluated = held[0]["kind"] == "evaluation"
        for some in _by(held, "trained") if evaluated else [held]:
            trained = f"trained to {some[0]['trained']:g}"
            points = []
            for size in sorted({row["size"] for row in some}):
                error = [row["error"] for row in some if row["size"] == size]
                points.append((size, float(np.mean(error)), min(error), max(error)))
            lines.append((trained if evaluated else some[0]["kind"], points))
    return lines


@styled
def figure_exponent(summaries: Sequence[Summary]) -> Figure:
    """The adaptation exponent: each seed's own, that of all seeds with its interval, the margin."""
    lines = _exponents(summaries)
    figure, ax = axes("Adaptation exponent κ", height=1.5 + 0.32 * max(len(lines), 2), grid="x")
    margins = sorted({s.identity["margin"] for s in summaries})
    ends = [0.0, *margins]
    for y, (_, colour, held) in enumerate(lines):
        if not held:
            ax.text(margins[-1], y, "  no verdict", color=MUTED, va="center")
        for row in held:
            whole = row["seed"] is None
            inset = 0.0 if whole or len(held) == 1 else 0.24
            ax.hlines(y + inset, row["low"], row["high"], color=colour, lw=3 if whole else 1,
                      alpha=1 if whole else 0.5)  # fmt: skip
            ax.plot(row["exponent"], y + inset, "D" if whole else "o", color=colour,
                    ms=7 if whole else 4, alpha=1 if whole else 0.7, gid="exponent")  # fmt: skip
            ends += [row["low"], row["high"]]
    ax.axvline(0, color=MUTED, lw=1)
    margin_lines = [ax.axvline(m, color=INK, lw=1.1, ls=(0, (4, 2))) for m in margins]
    pad = 0.08 * (max(ends) - min(ends))
    ax.set_xlim(min(ends) - pad, max(ends) + pad)
    ax.set_ylim(len(lines) - 0.4, -0.6)
    ax.set_yticks(range(len(lines)), [label for label, _, _ in lines], color=INK)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    legend(figure, [(line, f"margin {m:g}") for line, m in zip(margin_lines, margins, strict=True)])
    return figure


def _exponents(summaries: Sequence[Summary]) -> list[tuple[str, str, list[Row]]]:
    """(label, colour, rows) of each line: the seeds of one run, or one run of several."""
    if len(summaries) > 1:
        return [
            (rows.plain(name, 24), SERIES[i % len(SERIES)], rows.exponent_rows(s))
            for i, (s, name) in enumerate(zip(summaries, rows.names(summaries), strict=True))
        ]
    held = rows.exponent_rows(summaries[0])
    return [
        ("all seeds" if r["seed"] is None else f"seed {r['seed']}", SERIES[0], [r]) for r in held
    ]


def _deltas(ax: Axes, summaries: Sequence[Summary]) -> list[Entry]:
    deltas = sorted({s.delta for s in summaries})
    lines = [
        ax.axhline(d, color=INK, lw=1.2, ls=DASHES[1 + i % 2], gid="delta")
        for i, d in enumerate(deltas)
    ]
    return [(line, f"δ = {delta:g}") for line, delta in zip(lines, deltas, strict=True)]


def _errors(ax: Axes, sizes: Sequence[float]) -> None:
    """Errors on a square-root axis: small ones are told apart, and 0 has a place."""
    ax.set_yscale("function", functions=(_root, np.square))
    top = float(ax.dataLim.y1) if np.isfinite(ax.dataLim.y1) else 1.0
    ax.set_ylim(0, min(1.02, max(1.15 * top, 0.1)))
    ticks = [t for t in (0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1) if t <= ax.get_ylim()[1]]
    ax.set_yticks(ticks, [f"{t:g}" for t in ticks])
    if sizes:
        log_sizes(ax, sizes)


def _root(x: np.ndarray) -> np.ndarray:
    return np.sqrt(np.maximum(x, 0))


def _sizes(ax: Axes, sizes: Sequence[float], scale: Scale) -> None:
    if scale == "log":
        log_sizes(ax, sizes)
    else:
        ax.set_xlabel("size T")


def _mark(marker: str, colour: str = MUTED, filled: bool = False) -> Line2D:
    return Line2D(
        [], [], ls="", marker=marker, color=colour, ms=5, mfc=colour if filled else "none"
    )


def is_dense(summaries: Sequence[Summary]) -> bool:
    """Are points means over seeds?"""
    return _points(summaries) > DENSE


def _points(summaries: Sequence[Summary]) -> int:
    return sum(len(of) for s in summaries for of in s.stages.values())


def _by(held: Sequence[Row], key: str) -> list[list[Row]]:
    """Rows in groups of equal `key`, in order of first appearance."""
    groups: dict[object, list[Row]] = {}
    for row in held:
        groups.setdefault(row[key], []).append(row)
    return list(groups.values())


def _over_seeds(held: Sequence[Row], apart: str, *keys: str) -> list[Row]:
    """One row for each size (and value of `apart`): the means of `keys` over seeds."""
    groups: dict[object, list[Row]] = {}
    for row in held:
        groups.setdefault((row["size"], row[apart]), []).append(row)
    return [some[0] | {k: float(_column(some, k).mean()) for k in keys} for some in groups.values()]


def _column(held: Sequence[Row], key: str) -> np.ndarray:
    return np.array([row[key] for row in held], dtype=np.float64)


def _columns(held: Sequence[Row], *keys: str) -> list[np.ndarray]:
    return [_column(held, key) for key in keys]
