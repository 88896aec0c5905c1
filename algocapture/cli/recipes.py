"""`algocapture recipes`: what can be run by name."""

from __future__ import annotations

import click
from rich.table import Table
from rich.text import Text

from algocapture.cli.output import console, print_json
from algocapture.cli.recipe_files import entry, names


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def recipes(as_json: bool) -> None:
    """List the recipes that come with algocapture, with the time and memory that they take."""
    entries = [entry(name) for name in names()]
    if as_json:
        print_json(entries)
        return
    table = Table("recipe", "what it does", "takes", box=None)
    for held in entries:
        takes = "\n".join(f"{kind}: {cost}" for kind, cost in held["cost"].items())
        table.add_row(Text(held["recipe"], "bold"), held["about"], takes)
    console().print(table)
