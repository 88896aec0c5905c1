"""Write docs/tasks/cards.md and its pictures, reproducibly: python docs/make_cards.py"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

from algocapture.cli.draw import legend, symbols
from algocapture.report.instances import draw_graphs
from algocapture.rng import Seed
from algocapture.tasks.card import card, find
from algocapture.types import torch_generator

HERE = Path(__file__).parent / "tasks"
SIZES = {
    "Induction": (12, 50, 500),
    "Sorting": (12, 50, 500),
    "StringMatch": (12, 50, 500),
    "GrammarRecognition": (12, 50, 200),
    "ShortestPath": (16, 64, 256),
    "MinCut": (16, 64, 256),
}
STATISTICS = 4096

INTRODUCTION = f"""# Task cards

What the six tasks' instances are like, with their default fields. Written by
`python docs/make_cards.py`; `algocapture show TASK --size T` prints the same for any size and any
fields. Statistics and errors of cheap predictors are means over {STATISTICS} fresh instances: an
error of 0.5 has a standard error of 0.008. A cheap predictor that errs less than your delta makes a
verdict at that delta worthless.
"""


def section(name: str, sizes: tuple[int, ...], folder: Path) -> str:
    cards = [
        card(find(name)(), size, 4, torch_generator(Seed(0, ("cards", name, size))), STATISTICS)
        for size in sizes
    ]
    first = cards[0]
    fields = ", ".join(f"`{k}={v!r}`" for k, v in first["fields"].items())
    exponents = first["exponents"]
    parts = [
        f"## {name}",
        first["about"],
        f"Fields: {fields}.",
        pictures(name, cards, folder) if "graph" in first["instances"][0] else lines(first),
        table(cards),
        f"Exponent of the cost in T: {exponents['paper']:g} in the paper, {exponents['known']:g} "
        f"the best known ({exponents['source']}).",
    ]
    return "\n\n".join(parts)


def lines(one: dict[str, Any]) -> str:
    shown = [str(symbols(i["symbols"], i["answer"])) for i in one["instances"]]
    key = str(legend(one["instances"])).strip()
    return "\n".join(["```", *shown, *([f"\n{key}"] if key else []), "```"])


def pictures(name: str, cards: list[dict[str, Any]], folder: Path) -> str:
    found = []
    for one in cards[:2]:
        path = folder / f"{name}-{one['size']}.svg"
        figure = draw_graphs(one["instances"])
        with matplotlib.rc_context({"svg.hashsalt": "algocapture"}):
            figure.savefig(path, transparent=True, metadata={"Date": None})
        answers = ", ".join(f"{i['answer']:g}" for i in one["instances"])
        found.append(
            f"![{name}, T = {one['size']}: four instances, answers {answers}]({path.name})"
        )
    return "\n\n".join(found) + "\n\nThe source is the orange disc, the target the blue square."


def table(cards: list[dict[str, Any]]) -> str:
    columns = [rows(one) for one in cards]
    head = "| T | " + " | ".join(str(one["size"]) for one in cards) + " |"
    body = [
        f"| {name} | " + " | ".join(column[name] for column in columns) + " |"
        for name in columns[0]
    ]
    return "\n".join([head, "|---|" + "---|" * len(cards), *body])


def rows(one: dict[str, Any]) -> dict[str, str]:
    """Row's name -> its number at this size."""
    found = dict(one["statistics"])
    labels = found.pop("labels")
    found.pop("instances")
    named = {
        "distinct labels": str(labels["distinct"]),
        "entropy of the labels, bits": f"{labels['entropy_bits']:.2f}",
    }
    for name, value in found.items():
        value = value["value"] if isinstance(value, dict) else value
        named[name.replace("_", " ")] = f"{value:.3g}"
    return named | {f"error of: {name}": f"{e:.3f}" for name, e in one["baselines"].items()}


def main(folder: Path = HERE) -> None:
    sections = [section(name, sizes, folder) for name, sizes in SIZES.items()]
    text = "\n\n".join([INTRODUCTION.strip(), *sections])
    (folder / "cards.md").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
