"""`algocapture tasks`: what is there to be learnt."""

from __future__ import annotations

import click
from rich.table import Table
from rich.text import Text

from algocapture.cli.output import console, print_json
from algocapture.cli.text import echo
from algocapture.tasks.card import catalogue


@click.command()
@click.option("--names", is_flag=True, help="Only the names, one a line.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def tasks(names: bool, as_json: bool) -> None:
    """List the tasks: what is to be learnt, with all fields and their defaults."""
    entries = catalogue()
    if as_json:
        print_json(entries)
    elif names:
        echo("\n".join(entry["task"] for entry in entries))
    else:
        table = Table("task", "what is to be learnt", "fields and defaults", box=None)
        for entry in entries:
            fields = "  ".join(f"{name}={value}" for name, value in entry["fields"].items())
            table.add_row(Text(entry["task"], "bold"), Text(entry["about"]), Text(fields))
        console().print(table)
