"""`algocapture export`: a trained model as one file that any reader of safetensors opens."""

from __future__ import annotations

from pathlib import Path

import click

from algocapture.cli.loading import of_run
from algocapture.cli.output import print_json
from algocapture.cli.text import echo
from algocapture.experiment import export_model
from algocapture.store import RunFolder


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--seed", type=int, required=True, help="Whose weights.")
@click.option("--size", type=int, required=True, help="As they were when this size was passed.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="FILE.safetensors")
@click.option("--recipe", help="The file that defines the user's own task or module.")
@click.option("--set", "changes", multiple=True, metavar="FIELD=VALUE", help="As the run had them.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def export(
    folder: Path,
    seed: int,
    size: int,
    out: Path,
    recipe: str | None,
    changes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write the model of a seed of the run in FOLDER, with its configuration, to one file."""
    held = of_run(RunFolder(folder), recipe, changes)
    body = export_model(folder, seed, size, out, held)
    if as_json:
        print_json(body)
        return
    echo(f"{out}: error {body['error']['error']:.4f} at T = {size}")
