"""The page and the figures as files, each figure with its data as CSV and JSON beside it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from algocapture.report import rows
from algocapture.report.figures import Scale
from algocapture.report.html import figures, render
from algocapture.report.rows import Row
from algocapture.report.style import to_bytes
from algocapture.report.summary import Summary
from algocapture.store.files import make_folder, write_atomic

PAGE = "report.html"  # in a run's folder
KINDS = ("svg", "pdf", "png")

# Figure -> the tables that it draws.
DATA: dict[str, dict[str, Callable[[Summary], list[Row]]]] = {
    "curve": {"curve": rows.curve_rows, "curve-mean": rows.mean_rows},
    "exponent": {"exponent": rows.exponent_rows},
    "cost": {"cost": rows.cost_rows},
    "error": {"error": rows.error_rows, "error-baselines": rows.baseline_rows},
    "unadapted": {"unadapted": rows.unadapted_rows},
}


def write_page(summaries: Sequence[Summary], file: Path | str, scale: Scale = "log") -> Path:
    """Write the page of these runs as one self-contained file."""
    write_atomic(Path(file), render(summaries, scale).encode("utf-8"), durable=False)
    return Path(file)


def write_figures(
    summaries: Sequence[Summary], folder: Path | str, scale: Scale = "log"
) -> list[Path]:
    """Write all figures that have something to show, and their data; the files written."""
    folder = Path(folder)
    make_folder(folder)
    written = []
    for name, figure in figures(summaries, scale).items():
        files = {f"{name}.{kind}": to_bytes(figure, kind) for kind in KINDS}
        for table, read in DATA[name].items():
            held = data(summaries, read)
            files |= {f"{table}.csv": csv_bytes(held), f"{table}.json": _json(held)}
        for file, content in files.items():
            write_atomic(folder / file, content, durable=False)
            written.append(folder / file)
    return written


def data(summaries: Sequence[Summary], read: Callable[[Summary], list[Row]]) -> list[Row]:
    """The rows of all runs, each with its run's name."""
    return [
        {"run": name} | row
        for s, name in zip(summaries, rows.names(summaries), strict=True)
        for row in read(s)
    ]


def csv_bytes(held: list[Row]) -> bytes:
    if not held:
        return b""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(held[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(held)
    return text.getvalue().encode("utf-8")


def _json(held: list[Row]) -> bytes:
    return (json.dumps(held, indent=1, allow_nan=False) + "\n").encode("ascii")
