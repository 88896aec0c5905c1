"""`algocapture show`: a task card in the terminal."""

from __future__ import annotations

import click

from algocapture.cli.output import print_json
from algocapture.config import ConfigError, replace_field
from algocapture.rng import Seed
from algocapture.tasks.card import card, find
from algocapture.types import torch_generator


@click.command()
@click.argument("task")
@click.option("--size", required=True, type=int, help="T, the size of the instances.")
@click.option("--n", default=5, show_default=True, help="How many instances.")
@click.option("--seed", default=0, show_default=True, help="Root of the seeds.")
@click.option("--set", "changes", multiple=True, metavar="FIELD=VALUE", help="Change a field.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def show(task: str, size: int, n: int, seed: int, changes: tuple[str, ...], as_json: bool) -> None:
    """Show instances of TASK, how its labels fall, and what cheap predictors reach."""
    chosen = find(task)()
    for change in changes:
        field, equals, value = change.partition("=")
        if not equals:
            raise ConfigError(f"--set {change!r}: write FIELD=VALUE")
        chosen = replace_field(chosen, field, value)
    content = card(chosen, size, n, torch_generator(Seed(seed, ("show",))))
    print_json(content)
