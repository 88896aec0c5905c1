"""Figure 1 from the runs kept in docs/results/fig1: python docs/make_figure1.py

The same bytes each time, without a GPU. `python docs/make_figure1.py runs/fig1/all` first takes the
runs of that folder in: their records, without weights and checkpoints.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from algocapture.report.export import csv_bytes, data
from algocapture.report.panels import Panel, figure_panels, in_words, left_out
from algocapture.report.rows import Row, curve_rows
from algocapture.report.style import to_bytes
from algocapture.report.summary import Summary, summarise
from algocapture.store.files import write_atomic

HERE = Path(__file__).parent / "results" / "fig1"
KEPT = ("config.json", "result.json", "meta.json", "seed-*/stage-*.json")

# Letter, title, {run: label}, axis, whether seeds are drawn, what the paper found.
PANELS = (
    ("a", "Induction", {"induction": ""}, "log", False, "captured"),
    ("b", "Sorting", {f"sorting-{v}": f"V = {v}" for v in (100, 200, 300)}, "log", True,
     "captured"),
    ("c", "String matching", {f"string-match-{d}": f"δ = {d}%" for d in (10, 5, 2)}, "log", True,
     "captured on average"),
    ("e", "Shortest path", {f"shortest-path-{d}": f"{d} layers" for d in (4, 40)}, "linear", False,
     "not captured"),
    ("f", "Minimum cut", {f"min-cut-{d}": f"{d} layers" for d in (4, 40)}, "linear", False,
     "not captured"),
    ("g", "Grammar", {f"grammar-{d}": f"δ = {d}%" for d in (40, 20, 10)}, "log", True,
     "not captured"),
)  # fmt: skip


def take(folder: Path, home: Path = HERE) -> None:
    """Copy the records of a run, or of the runs of a sweep."""
    for config in sorted([*folder.glob("config.json"), *folder.glob("*/config.json")]):
        run = config.parent
        place = home / "runs" / run.name
        shutil.rmtree(place, ignore_errors=True)
        for pattern in KEPT:
            for file in sorted(run.glob(pattern)):
                target = place / file.relative_to(run)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)


def kept(home: Path = HERE) -> dict[str, Summary]:
    return {p.name: summarise(p) for p in sorted((home / "runs").iterdir())}


def make(home: Path = HERE) -> list[Path]:
    runs = kept(home)
    panels = [
        Panel(letter, title, [(label, runs[n]) for n, label in named.items() if n in runs], scale,
              thin)
        for letter, title, named, scale, thin, _ in PANELS
        if any(name in runs for name in named)
    ]  # fmt: skip
    figure = figure_panels(panels)
    files = {f"figure1.{kind}": to_bytes(figure, kind) for kind in ("svg", "pdf")}
    table = rows(runs)
    curves = data(list(runs.values()), curve_rows)
    files |= {"curves.csv": csv_bytes(curves), "verdicts.csv": csv_bytes(table)}
    files |= {"curves.json": _json(curves), "verdicts.json": _json(table)}
    files["summary.md"] = markdown(table).encode("utf-8")
    for name, content in files.items():
        write_atomic(home / name, content, durable=False)
    return [home / name for name in files]


def rows(runs: dict[str, Summary]) -> list[Row]:
    """A line for each run: what the paper found, what we did, on what it hangs."""
    found = []
    for letter, _, named, _, _, paper in PANELS:
        for name in (name for name in named if name in runs):
            run = runs[name]
            verdict, reason = run.judged
            curves = run.curves()
            start = sum(c.spent[0] for c in curves) / len(curves)
            sessions = run.meta.get("sessions", [])
            found.append(
                {
                    "panel": letter,
                    "run": name,
                    "paper": paper,
                    "outcome": verdict.outcome if verdict else reason,
                    "exponent": verdict.exponent if verdict else None,
                    "low": verdict.interval[0] if verdict else None,
                    "high": verdict.interval[1] if verdict else None,
                    "without each seed": in_words(left_out(run)),
                    "seeds": len(curves),
                    "mean P0": start,
                    "largest T": max(c.sizes[c.passed] for c in curves),
                    "seeds ended by a limit": sum(c.censored for c in curves),
                    "complete": run.complete,
                    "device": ", ".join(sorted({s.get("device", "?") for s in sessions})),
                    "seconds": sum(s.get("seconds", 0.0) for s in sessions),
                    "torch": ", ".join(sorted({s.get("torch", "?") for s in sessions})),
                }
            )
    return found


def markdown(table: list[Row]) -> str:
    lines = [
        "| panel | run | the paper | here | exponent | without each seed | mean P0 | largest T | "
        "minutes | device |",
        "|" + "---|" * 10,
    ]
    for row in table:
        exponent = ""
        if row["exponent"] is not None:
            exponent = f"{row['exponent']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        cells = (
            row["panel"], row["run"], row["paper"],
            row["outcome"] + ("" if row["complete"] else " (not finished)"), exponent,
            row["without each seed"], f"{row['mean P0']:,.0f}", f"{row['largest T']:,.0f}",
            f"{row['seconds'] / 60:.1f}", row["device"],
        )  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _json(held: list[Row]) -> bytes:
    return (json.dumps(held, indent=1, allow_nan=False) + "\n").encode("ascii")


def main(folders: list[str]) -> None:
    for folder in folders:
        take(Path(folder))
    for path in make():
        print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
