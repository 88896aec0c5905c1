"""`algocapture recipes`: what can be run by name."""

from __future__ import annotations

import ast
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from algocapture.cli.output import console, print_json
from algocapture.cli.recipe_files import PACKAGE, names


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def recipes(as_json: bool) -> None:
    """List the recipes that come with algocapture, with the time and memory that they take."""
    entries = [_entry(name) for name in names()]
    if as_json:
        print_json(entries)
        return
    table = Table("recipe", "what it does", "takes", box=None)
    for entry in entries:
        takes = "\n".join(f"{kind}: {cost}" for kind, cost in entry["cost"].items())
        table.add_row(Text(entry["recipe"], "bold"), entry["about"], takes)
    console().print(table)


def _entry(name: str) -> dict[str, Any]:
    """Read, not run: listing recipes imports none of them."""
    tree = ast.parse((PACKAGE / f"{name}.py").read_text("utf-8"))
    cost: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "COST":
            cost = ast.literal_eval(node.value)
    about = (ast.get_docstring(tree) or "").partition("\n")[0]
    return {"recipe": name, "about": about, "cost": cost}
