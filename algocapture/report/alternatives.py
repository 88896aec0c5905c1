"""What a reader who cannot see a figure is told instead."""

from __future__ import annotations

from collections.abc import Sequence

from algocapture.report import rows
from algocapture.report.style import short
from algocapture.report.summary import Summary


def describe(name: str, summaries: Sequence[Summary]) -> str:
    """The content of a figure in a sentence for each run."""
    tell = {
        "curve": _curve,
        "cost": _cost,
        "error": _error,
        "unadapted": _unadapted,
        "exponent": _exponent,
    }[name]
    labels = rows.names(summaries) if len(summaries) > 1 else [""]
    parts = [
        f"{label}: {tell(s)}" if label else tell(s)
        for label, s in zip(labels, summaries, strict=True)
    ]
    return " ".join(parts)


def _curve(s: Summary) -> str:
    mean = rows.mean_rows(s)
    cut = sum(c.censored for c in s.curves())
    censored = f" {cut} seeds end in a stage that was not passed." if cut else ""
    if not mean:
        return f"No size was passed.{censored}"
    return (
        f"Relative cost P/P0 against size for {len(s.curves())} seeds: from 1 at T = "
        f"{mean[0]['size']:g} to a mean of {mean[-1]['mean']:.3g} at T = "
        f"{mean[-1]['size']:g}.{censored}"
    )


def _cost(s: Summary) -> str:
    known = [r for r in rows.cost_rows(s) if r["known"] == "within"]
    if not known:
        return "Samples per unit of log T: no stage's cost is known beyond one look."
    early, late = known[0], max(known, key=lambda r: r["size"])
    return (
        f"Samples per unit of log T: about {short(early['high'])} by T = {early['size']:g}, about "
        f"{short(late['high'])} by T = {late['size']:g}."
    )


def _error(s: Summary) -> str:
    errors = [r["error"] for r in rows.error_rows(s) if r["passed"] and r["error"] is not None]
    if not errors:
        return f"No size was passed at delta = {s.delta:g}."
    return (
        f"Errors of the passing looks lie between {min(errors):.3g} and {max(errors):.3g}, "
        f"below delta = {s.delta:g}."
    )


def _unadapted(s: Summary) -> str:
    errors = [r["error"] for r in rows.unadapted_rows(s)]
    if not errors:
        return "No error without adaptation was measured."
    return (
        f"Errors before adaptation lie between {min(errors):.3g} and {max(errors):.3g}; delta is "
        f"{s.delta:g}."
    )


def _exponent(s: Summary) -> str:
    verdict, reason = s.judged
    if verdict is None:
        return f"No exponent: {rows.plain(reason, 300)}."
    low, high = verdict.interval
    return (
        f"The adaptation exponent is {verdict.exponent:.2f}, interval {low:.2f} to {high:.2f}, "
        f"margin {verdict.margin:g}."
    )
