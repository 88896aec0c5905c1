"""What each figure shows, as rows of plain values: drawn, and written as CSV and JSON beside it."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from algocapture.report.summary import Stage, Summary
from algocapture.stats import Curve
from algocapture.stats.curve import resolution
from algocapture.stats.growth import log_shape
from algocapture.stats.hierarchy import FARTHEST

Row = dict[str, Any]
LONGEST = 48  # characters of a name

# Marks that turn the direction of the text around them.
TURNING = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def plain(text: object, longest: int = LONGEST) -> str:
    """A text that may be shown: what XML cannot hold or what turns text around is replaced."""
    shown = "".join(
        "\ufffd" if c in TURNING or unicodedata.category(c) in ("Cc", "Cs", "Cn", "Co") else c
        for c in str(text)
    )
    return shown if len(shown) <= longest else shown[: longest - 1] + "\u2026"


def names(summaries: Sequence[Summary]) -> list[str]:
    """The folders' names, with as many of their parents as tell them apart."""
    parts = [[p for p in Path(s.path).resolve().parts if p != "/"] for s in summaries]
    found = []
    for own in parts:
        others = [p for p in parts if p != own]
        depth = next(
            (d for d in range(1, len(own)) if all(p[-d:] != own[-d:] for p in others)), len(own)
        )
        found.append(plain("/".join(own[-depth:])))
    return found


def curve_rows(s: Summary) -> list[Row]:
    """P(T) of every seed, in samples and relative to P0."""
    return [
        {
            "seed": c.seed,
            "size": c.sizes[i],
            "spent_low": low,
            "spent": c.spent[i],
            "relative_low": low / c.spent[0],
            "relative": c.spent[i] / c.spent[0],
            "censored": c.censored and i == len(c.sizes) - 1,
        }
        for c in s.curves()
        for i, low in enumerate(c.spent_low or c.spent)
    ]


def mean_rows(s: Summary) -> list[Row]:
    """Mean and spread of P/P0 over the seeds that passed a size."""
    seeds = len(s.curves())
    passed: dict[float, list[float]] = {}
    for row in curve_rows(s):
        if not row["censored"]:
            passed.setdefault(row["size"], []).append(row["relative"])
    return [
        {
            "size": size,
            "seeds": len(held),
            "all": len(held) == seeds,
            "mean": float(np.mean(held)),
            "sd": float(np.std(held, ddof=1)) if len(held) > 1 else 0.0,
        }
        for size, held in sorted(passed.items())
    ]


def cost_rows(s: Summary) -> list[Row]:
    """Each stage's cost per unit of log(T): its interval, and how much is known of it."""
    curves = _grown(s)
    step = resolution(curves)
    rows = []
    for c in curves:
        u = c.log_sizes()
        width = np.diff(u) if c.cumulative else u[1:]
        low, high = c.costs(step)
        start = np.array(c.sizes[:-1]) if c.cumulative else np.full(len(width), c.sizes[0])
        for i in range(len(width)):
            rows.append(
                {
                    "seed": c.seed,
                    "size_from": float(start[i]),
                    "size": c.sizes[i + 1],
                    "low": float(low[i] / width[i]),
                    "high": float(high[i] / width[i]) if math.isfinite(high[i]) else None,
                    "known": _known(float(low[i]), float(high[i])),
                }
            )
    return rows


def _known(low: float, high: float) -> str:
    if not math.isfinite(high):
        return "above"  # a lower bound: the stage was not passed
    return "within" if low > 0 else "below"  # at most one look


def law(s: Summary, exponent: float, sizes: Sequence[float]) -> list[float]:
    """Cost per log-size c exp(exponent u) with c from the stages whose cost is known; or []."""
    if not math.isfinite(exponent):  # every stage was free
        return []
    exponent = min(max(exponent, -FARTHEST), FARTHEST)  # an end that is hardly known
    curves = _grown(s)
    step = resolution(curves)
    logs = []
    for c in curves:
        low, high = c.costs(step)
        known = (low > 0) & np.isfinite(high)
        shape = log_shape(c, np.array(exponent))
        logs += list(0.5 * np.log(low[known] * high[known]) - shape[known])
    if not logs:
        return []
    scale, u = math.exp(np.mean(logs)), np.log(np.array(sizes) / curves[0].sizes[0])
    if s.cumulative:
        return list(scale * np.exp(exponent * u))
    grid = Curve([1.0, *np.exp(u)], [1.0] * (len(u) + 1), cumulative=False)
    return list(scale * np.exp(log_shape(grid, np.array(exponent))) / u)


def error_rows(s: Summary) -> list[Row]:
    """The error of each stage at its last look, with the look's interval."""
    return [
        {"seed": seed, "size": stage["size"], "passed": stage["outcome"] == "passed"}
        | {key: stage["looks"][-1].get(key) for key in ("n", "error", "low", "high")}
        for seed, stage in _stages(s)
        if stage.get("looks")
    ]


def baseline_rows(s: Summary) -> list[Row]:
    """The error of each shortcut at each size, over seeds."""
    held: dict[tuple[str, float], list[float]] = {}
    for _, stage in _stages(s):
        for name, error in stage.get("baselines", {}).items():
            held.setdefault((name, stage["size"]), []).append(error)
    return [
        {"baseline": name, "size": size, "error": float(np.mean(errors)), "seeds": len(errors)}
        for (name, size), errors in sorted(held.items())
    ]


def unadapted_rows(s: Summary) -> list[Row]:
    """Error at sizes before any adaptation to them: first looks, probes, evaluations."""
    keys = ("n", "error", "low", "high")
    rows = []
    for seed, stages in s.stages.items():
        for before, stage in pairwise(stages):
            first = (stage.get("looks") or [{}])[0]
            if first.get("samples") == 0 and "error" in first:
                place = {"seed": seed, "kind": "the next size", "trained": before["size"]}
                rows.append(place | {"size": stage["size"]} | {k: first.get(k) for k in keys})
        for stage in stages:
            for probe in (held for held in stage.get("probes", []) if "error" in held):
                kind = f"{probe['size'] / stage['size']:.2g} times the size"
                place = {"seed": seed, "kind": kind, "trained": stage["size"]}
                rows.append(place | {"size": probe["size"]} | {k: probe.get(k) for k in keys})
    for row in s.evaluations:
        place = {"seed": row["seed"], "kind": "evaluation", "trained": row["trained"]}
        rows.append(place | {"size": row["size"]} | {k: row.get(k) for k in keys})
    return rows


def exponent_rows(s: Summary) -> list[Row]:
    """Each seed's own exponent, then that of all seeds together (seed None)."""
    verdict = s.judged[0]
    if verdict is None or not math.isfinite(verdict.exponent):
        return []
    rows = [
        {
            "seed": fit.seed,
            "exponent": fit.exponent,
            "low": fit.exponent - fit.stderr,
            "high": fit.exponent + fit.stderr,
        }
        for fit in verdict.per_seed
    ]
    low, high = verdict.interval
    return [*rows, {"seed": None, "exponent": verdict.exponent, "low": low, "high": high}]


def _stages(s: Summary) -> list[tuple[int, Stage]]:
    return [(seed, stage) for seed, of in s.stages.items() for stage in of]


def _grown(s: Summary) -> list[Curve]:
    """The curves that go beyond T0."""
    return [c for c in s.curves() if len(c.sizes) > 1]
