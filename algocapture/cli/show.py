"""`algocapture show`: a task card in the terminal."""

from __future__ import annotations

from typing import Any

import click
from rich.columns import Columns
from rich.table import Table
from rich.text import Text

from algocapture.cli import draw
from algocapture.cli.output import console, print_json
from algocapture.config import ConfigError, replace_field
from algocapture.rng import Seed
from algocapture.tasks.card import card, find
from algocapture.types import torch_generator

PICTURE = (36, 18)  # columns and rows of a graph
BAR = 30  # columns of the commonest label


@click.command()
@click.argument("task")
@click.option("--size", required=True, type=int, help="T, the size of the instances.")
@click.option("--n", default=5, show_default=True, help="How many instances.")
@click.option("--seed", default=0, show_default=True, help="Root of the seeds.")
@click.option("--set", "changes", multiple=True, metavar="FIELD=VALUE", help="Change a field.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, instances in full.")
def show(task: str, size: int, n: int, seed: int, changes: tuple[str, ...], as_json: bool) -> None:
    """Show instances of TASK, how its labels fall, and what cheap predictors reach."""
    chosen = find(task)()
    for change in changes:
        field, equals, value = change.partition("=")
        if not equals:
            raise ConfigError(f"--set {change!r}: write FIELD=VALUE")
        chosen = replace_field(chosen, field, value)
    content = card(chosen, size, n, torch_generator(Seed(seed, ("show",))))
    if as_json:
        print_json(content)
    else:
        print_card(content)


def print_card(content: dict[str, Any]) -> None:
    out = console()
    out.print(Text(f"\n{content['task']}, T = {content['size']}", "bold"))
    out.print(Text(content["about"]))
    out.print(Text(pairs(content["fields"]), "dim"))
    instances = content["instances"]
    if "graph" in instances[0]:
        pictures = [
            draw.graph(**one["graph"], columns=PICTURE[0], rows=PICTURE[1]).append(
                f"answer {one['answer']:g}", "bold"
            )
            for one in instances
        ]
        out.print(Columns(pictures, padding=(1, 3)))
    else:
        for one in instances:
            out.print(draw.symbols(one["symbols"], one["answer"]))
        if legend := draw.legend(instances):
            out.print(legend)
    print_statistics(content)


def print_statistics(content: dict[str, Any]) -> None:
    out, found = console(), dict(content["statistics"])
    n, labels = found.pop("instances"), found.pop("labels", None)
    out.print(Text(f"\nOver {n} instances", "bold"))
    if found:
        out.print(Text(pairs(found)))
    if labels:
        most = max(share for _, share in labels["shares"])
        out.print(
            f"{labels['distinct']} labels, entropy {labels['entropy_bits']:.2f} bits, "
            f"the commonest in {most:.3f} of the answers"
        )
        if labels["distinct"] <= len(labels["shares"]):
            out.print(label_table(sorted(labels["shares"])))
    out.print(Text("Cheap predictors err", "bold"))
    table = Table(box=None, show_header=False)
    for name, error in content["baselines"].items():
        spread = 2 * (error * (1 - error) / n) ** 0.5
        table.add_row(name, f"{error:.3f}", f"± {spread:.3f}")
    out.print(table)
    if content["exponents"]:
        exponents = content["exponents"]
        out.print(
            Text(
                f"Exponent of the cost in T: paper {exponents['paper']:g}, "
                f"best known {exponents['known']:g} ({exponents['source']})",
                "dim",
            )
        )


def label_table(shares: list[list[float]]) -> Table:
    table = Table(box=None, show_header=False)
    most = max(share for _, share in shares)
    for label, share in shares:
        table.add_row(f"{label:g}", f"{share:.3f}", Text("█" * round(BAR * share / most), "blue"))
    return table


def pairs(values: dict[str, Any]) -> str:
    """name=value, name=value, ..., numbers short."""
    return ", ".join(f"{name.replace('_', ' ')} {short(value)}" for name, value in values.items())


def short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return "(" + pairs(value) + ")"
    return str(value)
