"""Pictures of graph instances, for task cards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

# Okabe and Ito's palette, which colour-blind readers tell apart; on a transparent ground the
# greys stay legible on light and on dark pages.
SOURCE, TARGET, POINT, EDGE = "#D55E00", "#0072B2", "#808080", "#9A9A9A"


def draw_graphs(instances: Sequence[dict[str, Any]]) -> Figure:
    """A row of graphs; each instance holds `graph` (points, edges) and `answer`."""
    figure = Figure(figsize=(2.6 * len(instances), 2.9), layout="constrained")
    row = figure.subplots(1, len(instances), squeeze=False, sharex=True, sharey=True)[0]
    for axes, one in zip(row, instances, strict=True):
        points, edges = one["graph"]["points"], one["graph"]["edges"]
        ends = {0: SOURCE, len(points) - 1: TARGET}
        for colour in (EDGE, SOURCE, TARGET):
            drawn = [e for e in edges if next((ends[k] for k in e if k in ends), EDGE) == colour]
            axes.plot(*polyline(points, drawn), color=colour, linewidth=0.8, zorder=1)
        axes.scatter(*zip(*points, strict=True), s=7, color=POINT, zorder=2)
        for (k, colour), marker in zip(ends.items(), ("o", "s"), strict=True):
            axes.scatter(*points[k], s=42, color=colour, marker=marker, zorder=3)
        axes.set_title(f"answer {one['answer']:g}", fontsize=10, color=POINT)
        axes.set_aspect("equal")
        axes.axis("off")
    return figure


def polyline(points: list[list[float]], edges: list[list[int]]) -> tuple[list[float], list[float]]:
    """All edges as one broken line, which is a far smaller file than a path for each."""
    gap = float("nan")
    xs = [x for i, j in edges for x in (points[i][0], points[j][0], gap)]
    ys = [y for i, j in edges for y in (points[i][1], points[j][1], gap)]
    return xs, ys
