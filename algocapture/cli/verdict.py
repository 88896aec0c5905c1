"""`algocapture verdict`: what a run's curves say."""

from __future__ import annotations

from pathlib import Path

import click

from algocapture.cli.output import print_json
from algocapture.report import Summary, summarise


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def verdict(folder: Path, as_json: bool) -> None:
    """Judge the run in FOLDER, finished or not."""
    conclude(summarise(folder), as_json)


def conclude(summary: Summary, as_json: bool) -> None:
    """The verdict, as `run` and `verdict` print it."""
    if as_json:
        print_json(summary.to_json())
        return
    found = summary.verdict()
    click.echo(found.sentence(summary.delta))
    if not summary.complete:
        click.echo("  note: the run is not complete; this is what its decided stages say")
    for caveat in found.caveats:
        click.echo(f"  note: {caveat}")
    if found.advice:
        click.echo(f"  advice: {found.advice}")
