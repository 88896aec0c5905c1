"""A study's findings as files: a CSV for each table, an SVG for each chart, one page of Markdown.

All of them are made of the measured parts and may be made again at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from algocapture.report.export import csv_bytes
from algocapture.report.style import MARKERS, SERIES, axes, legend, styled, to_bytes
from algocapture.stats.findings import Chart, Findings, Row
from algocapture.store.files import make_folder, write_atomic

SUMMARY = "summary.md"
DIGITS = ((1,), (1, 2, 5), (1, 2, 3, 4, 6, 8))  # of an axis' ticks; the first with three or more
MOST_ROWS = 40  # of a table on the page; the CSV has all


def write_findings(findings: Findings, folder: Path) -> list[Path]:
    """Write tables/, figures/ and summary.md below `folder`; the files written."""
    files = {f"tables/{name}.csv": csv_bytes(rows) for name, rows in findings.all_tables().items()}
    for chart in findings.charts:
        figure = draw_chart(chart, findings.tables[chart.table])
        files[f"figures/{chart.name}.svg"] = to_bytes(figure, "svg")
    files[SUMMARY] = markdown(findings).encode("utf-8")
    for name, content in files.items():
        make_folder((folder / name).parent)
        write_atomic(folder / name, content, durable=False)
    return [folder / name for name in files]


@styled
def draw_chart(chart: Chart, rows: Sequence[Row]) -> Figure:
    """Lines with their points and, where the error is known, bars of two standard errors."""
    figure, ax = axes(chart.title, grid="both")
    entries: list[tuple[Any, str]] = []
    for i, name in enumerate(_names(chart, rows)):
        held = [row for row in rows if not chart.series or str(row[chart.series]) == name]
        held = [row for row in held if row[chart.x] is not None and row[chart.y] is not None]
        colour, marker = SERIES[i % len(SERIES)], MARKERS[i % len(MARKERS)]
        x, y = ([float(row[column]) for row in held] for column in (chart.x, chart.y))
        ax.plot(x, y, color=colour, marker=marker, ms=4, lw=1.4)
        if chart.error:
            bars = 2 * np.array([float(row[chart.error] or 0.0) for row in held])
            ax.errorbar(x, y, yerr=bars, fmt="none", ecolor=colour, elinewidth=1, alpha=0.6)
        entries.append((Line2D([], [], color=colour, marker=marker, ms=4), name))
    if chart.scale == "log":
        _log_axis(ax.set_xscale, ax.get_xlim, ax.set_xticks)
        _log_axis(ax.set_yscale, ax.get_ylim, ax.set_yticks)
    ax.set_xlabel(chart.label)
    if chart.series:
        legend(figure, entries)
    return figure


def _log_axis(
    scale: Callable[..., Any], limits: Callable[..., Any], ticks: Callable[..., Any]
) -> None:
    """A logarithmic axis: ticks at powers of ten, at more digits where these are few."""
    scale("log")
    low, high = limits()
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    for digits in DIGITS:
        held = [d * 10.0**k for k in powers for d in digits if low <= d * 10.0**k <= high]
        if len(held) > 2:
            break
    every = -(-len(held) // 7)
    ticks(held[::every], [_tick(t) for t in held[::every]])
    ticks([], minor=True)


def _tick(number: float) -> str:
    """Plain up to a million; text, since a dollar in a label is a dollar."""
    power = round(np.log10(number))
    if 1e-3 <= number <= 1e6:
        return f"{number:,.0f}" if number >= 1 else f"{number:g}"
    if abs(10.0**power / number - 1) < 1e-9:
        return "10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{number:.0e}".replace("e+0", "e").replace("e-0", "e-")


def _names(chart: Chart, rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(str(row[chart.series]) for row in rows)) if chart.series else [""]


def markdown(findings: Findings) -> str:
    """Tables as a reader sees them, with the figures linked."""
    blocks = [f"# {findings.title}", *findings.notes]
    for name, rows in findings.all_tables().items():
        blocks += [f"## {name}", _table(rows[:MOST_ROWS])]
        if len(rows) > MOST_ROWS:
            blocks.append(f"{len(rows) - MOST_ROWS} more rows in `tables/{name}.csv`.")
        drawn = [chart for chart in findings.charts if chart.table == name]
        blocks += [f"![{chart.title}](figures/{chart.name}.svg)" for chart in drawn]
    return "\n\n".join(blocks) + "\n"


def _table(rows: Sequence[Row]) -> str:
    if not rows:
        return "(empty)"
    columns = list(rows[0])
    lines = [columns, ["---"] * len(columns)]
    lines += [[_cell(row[column]) for column in columns] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value).replace("|", "\\|")
