"""Instances for the terminal: symbols with brackets and colours, graphs in Braille dots."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from rich.text import Text

# Role -> brackets, which also readers without colour see, and a style.
ROLES = {
    "": ("", "", ""),
    "trigger": ("[", "]", "bold magenta"),
    "answer": ("<", ">", "bold green"),
    "match": ("<", ">", "bold green"),
    "near miss": ("(", ")", "yellow"),
    "separator": ("", "", "bold cyan"),
    "source": ("[", "]", "bold magenta"),
    "target": ("<", ">", "bold green"),
    "beside source": ("", "", "magenta"),
    "beside target": ("", "", "green"),
}
HEAD, TAIL = 120, 60  # symbols that are shown of a longer instance
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of a Braille cell, 4 x 2


def symbols(instance: Sequence[Sequence[str]], answer: Any) -> Text:
    """The instance on one line, runs of one role in brackets, and its answer."""
    shown = list(instance)
    if len(shown) > HEAD + TAIL:
        left_out = [f"... {len(shown) - HEAD - TAIL} more ...", ""]
        shown = [*shown[:HEAD], left_out, *shown[-TAIL:]]
    letters = all(len(text) == 1 for text, role in shown if role != "separator")
    gap, line = "" if letters else " ", Text()
    for role, run in groupby(shown, key=lambda symbol: symbol[1]):
        left, right, style = ROLES.get(role, ("", "", "bold"))
        spaced = " " if role == "separator" and letters else ""
        body = gap.join(text for text, _ in run)
        line.append(f"{spaced}{left}{body}{right}{spaced}{gap}", style)
    line.append("  answer ", "dim")
    values = answer if isinstance(answer, list) else [answer]
    line.append(" ".join(f"{value:g}" for value in values), "bold")
    return line


def legend(instances: Sequence[dict[str, Any]]) -> Text:
    """What the brackets mean, of the roles that occur."""
    met = {role for one in instances for _, role in one["symbols"]}
    marked = {role: ROLES[role] for role in ROLES if role in met and ROLES[role][0]}
    line = Text()
    for role, (left, right, style) in marked.items():
        line.append(f"{left}{role}{right} ", style)
    return line


def graph(points: list[list[float]], edges: list[list[int]], columns: int, rows: int) -> Text:
    """Edges as Braille dots, points as o, source S and target T."""
    low = [min(p[k] for p in points) for k in (0, 1)]
    span = [max(max(p[k] for p in points) - low[k], 1e-9) for k in (0, 1)]
    width, height = 2 * columns - 1, 4 * rows - 1
    at = [
        (round((x - low[0]) / span[0] * width), round((1 - (y - low[1]) / span[1]) * height))
        for x, y in points
    ]
    cells = [[0] * columns for _ in range(rows)]
    for i, j in edges:
        for x, y in segment(at[i], at[j]):
            cells[y // 4][x // 2] |= DOTS[y % 4][x % 2]
    names = {(x // 2, y // 4): ("o", "bold") for x, y in at}
    names[at[0][0] // 2, at[0][1] // 4] = ("S", ROLES["source"][2])
    names[at[-1][0] // 2, at[-1][1] // 4] = ("T", ROLES["target"][2])
    picture = Text()
    for r, row in enumerate(cells):
        for c, dots in enumerate(row):
            picture.append(*names.get((c, r), (chr(0x2800 + dots) if dots else " ", "dim")))
        picture.append("\n")
    return picture


def segment(start: tuple[int, int], end: tuple[int, int]) -> list[tuple[int, int]]:
    """The dots of a straight line."""
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
    return [
        (
            round(start[0] + (end[0] - start[0]) * k / steps),
            round(start[1] + (end[1] - start[1]) * k / steps),
        )
        for k in range(steps + 1)
    ]
