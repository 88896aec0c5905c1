"""`algocapture eval`: accuracy against size, without adaptation."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from algocapture.cli.loading import load
from algocapture.cli.output import console, print_json
from algocapture.config import ConfigError
from algocapture.experiment import evaluate, stored_experiment
from algocapture.store import RunFolder


@click.command("eval")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--sizes", required=True, help="Sizes, such as 50,100,150.")
@click.option("--trained", type=int, help="Weights as they passed this size [the largest].")
@click.option("--samples", default=1024, show_default=True, help="Instances of each size.")
@click.option("--recipe", help="The file that defines the user's own task or module.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def eval(
    folder: Path, sizes: str, trained: int | None, samples: int, recipe: str | None, as_json: bool
) -> None:
    """Evaluate the models of the run in FOLDER at other sizes; the result is kept in it."""
    run = RunFolder(folder)
    experiment = load(recipe).only() if recipe else stored_experiment(run)
    rows = evaluate(run, experiment, _sizes(sizes), samples, trained)
    run.write_note(f"eval-{trained or 'largest'}", rows)
    if as_json:
        print_json(rows)
        return
    table = Table("seed", "trained to", "T", "error", "95% interval", box=None)
    for row in rows:
        table.add_row(
            str(row["seed"]), str(row["trained"]), str(row["size"]), f"{row['error']:.4f}",
            f"{row['low']:.4f} to {row['high']:.4f}",
        )  # fmt: skip
    console().print(table)


def _sizes(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise ConfigError(f"--sizes {text!r}: write integers separated by commas") from None
