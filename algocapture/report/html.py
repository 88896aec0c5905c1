"""One HTML page for one run or several: self-contained, no scripts, nothing from outside.

Every text goes through jinja2's escaping, or through `_raised`; the figures are markup of ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib.figure import Figure

import algocapture
from algocapture.report import rows, tables
from algocapture.report.alternatives import describe
from algocapture.report.figures import (
    Scale,
    figure_cost,
    figure_curve,
    figure_error,
    figure_exponent,
    figure_unadapted,
    is_dense,
)
from algocapture.report.matrix import matrix
from algocapture.report.style import inline, short
from algocapture.report.summary import Summary, summarise

TEMPLATES = Path(__file__).parent / "templates"


def page(folders: Sequence[Path | str], scale: Scale = "log") -> str:
    """The page of these runs as text."""
    return render([summarise(folder) for folder in folders], scale)


def render(summaries: Sequence[Summary], scale: Scale = "log") -> str:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"plain": rows.plain, "short": short, "power": tables.power}
    environment.filters["raised"] = _raised
    return environment.get_template("page.html").render(
        css=(TEMPLATES / "page.css").read_text("utf-8"),
        version=algocapture.__version__,
        runs=[
            tables.run(s, name, tables.MOST_STAGES // len(summaries))
            for s, name in zip(summaries, rows.names(summaries), strict=True)
        ],
        figures=_shown(summaries, scale),
        differences=tables.differences(summaries),
        deltas=tables.deltas(summaries),
        matrix=matrix(summaries),
        dense=is_dense(summaries),
    )


def figures(summaries: Sequence[Summary], scale: Scale = "log") -> dict[str, Figure]:
    """The figures that have something to show, by name."""
    drawn: dict[str, Figure] = {"curve": figure_curve(summaries, scale)}
    has: list[tuple[str, Callable[[Sequence[Summary]], Figure], Callable[[Summary], Any]]] = [
        ("exponent", figure_exponent, rows.exponent_rows),
        ("cost", figure_cost, rows.cost_rows),
        ("error", figure_error, rows.error_rows),
        ("unadapted", figure_unadapted, rows.unadapted_rows),
    ]
    for name, draw, data in has:
        if any(data(s) for s in summaries):
            drawn[name] = draw(summaries)
    return drawn


def _raised(text: str) -> str:
    """Powers such as T^3 and T^(3 to 3.2), raised; all else is escaped."""
    power = r"T\^(?:\(([^)]*)\)|([\d.]*\d))"
    return re.sub(power, lambda m: f"T<sup>{m[1] or m[2]}</sup>", escape(text))


def _shown(summaries: Sequence[Summary], scale: Scale) -> dict[str, str]:
    """SVG elements: with the style sheet, the one thing that the template does not escape."""
    return {
        name: inline(figure, name, describe(name, summaries))
        for name, figure in figures(summaries, scale).items()
    }
