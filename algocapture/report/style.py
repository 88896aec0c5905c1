"""How figures look and how they become bytes: one palette, reproducible files."""

from __future__ import annotations

import functools
import io
import math
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

HALF = 20  # characters of a legend's label that leave room for another beside it

P = ParamSpec("P")
R = TypeVar("R")

INK, MUTED, GRID = "#1b1f24", "#68707c", "#dfe2e7"
# Okabe and Ito's colours, which colour-blind readers tell apart, without the yellow: too pale.
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = ("o", "s", "D", "P", "X", "*")  # triangles mean bounds
DASHES: tuple[str | tuple[int, tuple[float, ...]], ...] = ("-", (0, (4, 1.5)), (0, (1, 1.2)))

# A colour in a figure -> what the page's style sheet calls it, so that dark pages may lighten it.
VARIABLES = {INK: "ink", MUTED: "muted", GRID: "grid"} | {
    colour: f"series-{i}" for i, colour in enumerate(SERIES)
}

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # it comes with matplotlib: the same layout everywhere
    "font.size": 11,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.titlepad": 10,
    "axes.unicode_minus": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "text.parse_math": False,  # names come from users: a dollar is a dollar
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "legend.frameon": False,
    "legend.fontsize": 10,
    "legend.labelcolor": INK,
    "figure.constrained_layout.h_pad": 0.06,
    "svg.hashsalt": "algocapture",
    "pdf.fonttype": 42,
}


def styled(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function under our style, whatever the user's own settings are."""

    @functools.wraps(function)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        with matplotlib.rc_context(), warnings.catch_warnings():
            matplotlib.rcdefaults()
            matplotlib.rcParams.update(STYLE)
            warnings.filterwarnings("ignore", "Glyph .* missing from")  # names in any script
            return function(*args, **kwargs)

    return inner


def axes(title: str, height: float = 3.5, grid: str = "y") -> tuple[Figure, Axes]:
    """An empty figure whose title says what the vertical axis shows."""
    figure = Figure(figsize=(4.6, height), layout="constrained")
    ax = figure.add_subplot()
    ax.set_title(title)
    ax.grid(axis=grid)  # type: ignore[arg-type]
    ax.tick_params(length=3)
    return figure, ax


def log_sizes(ax: Axes, sizes: Sequence[float]) -> None:
    """A logarithmic axis of sizes with ticks at round numbers."""
    low, high = min(sizes), max(sizes)
    ax.set_xscale("log")
    ticks = _round(low, high)
    if len(ticks) < 3:
        ticks = sorted({float(round(t)) for t in np.geomspace(low, high, 4)})
    ax.set_xticks(ticks, [f"{t:,.0f}" for t in ticks])
    ax.set_xticks([], minor=True)
    ax.set_xlabel("size T")


def log_counts(ax: Axes, counts: Sequence[float]) -> None:
    """A logarithmic vertical axis of numbers of samples, at least a decade high."""
    ax.set_yscale("log")
    low, high = min(counts), max(counts)
    widen = max(1.3, math.sqrt(10 * low / high))
    ax.set_ylim(low / widen, high * widen)
    ticks = _round(*ax.get_ylim())
    if len(ticks) > 7:
        ticks = [t for t in ticks if f"{t:e}"[0] == "1"]
    ax.set_yticks(ticks, [short(t) for t in ticks])
    ax.set_yticks([], minor=True)


def _round(low: float, high: float) -> list[float]:
    """The numbers 1, 2, 5, 10, ... in a range."""
    return [t for k in range(-3, 25) for m in (1, 2, 5) if low <= (t := m * 10.0**k) <= high]


def short(number: float) -> str:
    """12,300 as 12.3k."""
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= 0.9995 * size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def legend(figure: Figure, entries: Sequence[tuple[Line2D | Patch, str]]) -> None:
    """Below the axes, where it covers no data. A label may begin with an underscore."""
    if not entries:
        return
    columns = 2 if max(len(label) for _, label in entries) <= HALF else 1
    figure.legend(
        [handle for handle, _ in entries],
        [" " + label if label.startswith("_") else label for _, label in entries],
        loc="outside lower left",
        ncols=columns,
        handlelength=1.8,
        columnspacing=1.4,
    )
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.21 * math.ceil(len(entries) / columns))


@styled
def to_bytes(figure: Figure, kind: str, *, text: bool = False) -> bytes:
    """A figure as svg, pdf or png: the same bytes for the same figure.

    `text`: letters of an SVG stay text, in the reader's font, instead of outlines.
    """
    matplotlib.rcParams["svg.fonttype"] = "none" if text else "path"
    unstamped = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}
    held = io.BytesIO()
    figure.savefig(held, format=kind, metadata=unstamped[kind], dpi=300, transparent=kind == "svg")
    return held.getvalue()


def inline(figure: Figure, name: str, description: str) -> str:
    """A figure as an SVG element of a page: its colours and fonts are the page's, and it has
    a text alternative."""
    svg = to_bytes(figure, "svg", text=True).decode("utf-8")
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", "", svg, flags=re.DOTALL)
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', svg))
    # Only in tags: what they hold is text, perhaps a user's.
    svg = re.sub(r"<[^>]*>", lambda tag: _to_page(tag[0], name, used), svg)
    svg = re.sub(r">\s+<", "><", svg)
    head, rest = svg.split(">", 1)
    box = re.search(r'viewBox="[^"]+"', head)
    assert box is not None
    label = description.translate({38: "&amp;", 60: "&lt;", 62: "&gt;", 34: "&quot;"})
    opening = f'<svg {box[0]} xmlns:xlink="http://www.w3.org/1999/xlink" role="img"'
    return f'{opening} aria-label="{label}">{rest}'.strip()


def _to_page(tag: str, name: str, used: set[str]) -> str:
    """A tag with short numbers, names that no other figure has, and the page's colours and font."""
    tag = re.sub(r"font: (?:[a-z0-9]+ )*?([\d.]+)px [^;\"]*", r"font-size: \1px", tag)
    tag = re.sub(r' id="([^"]*)"', lambda i: f' id="{name}-{i[1]}"' if i[1] in used else "", tag)
    tag = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", tag)
    tag = re.sub(r"(\d\.\d\d)\d+", r"\1", tag)
    for colour, variable in VARIABLES.items():
        tag = tag.replace(colour, f"var(--{variable})")
    return tag
