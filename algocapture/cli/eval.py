"""`algocapture eval`: accuracy against size, without adaptation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
from rich.table import Table

from algocapture.cli.loading import of_run
from algocapture.cli.output import console, print_json
from algocapture.config import ConfigError
from algocapture.experiment import evaluate
from algocapture.store import RunFolder


@click.command("eval")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--sizes", required=True, help="Sizes, such as 50,100,150.")
@click.option("--trained", type=int, help="Weights as they passed this size [the largest].")
@click.option("--samples", default=1024, show_default=True, help="Instances of each size.")
@click.option("--recipe", help="The file that defines the user's own task or module.")
@click.option("--set", "changes", multiple=True, metavar="FIELD=VALUE", help="As the run had them.")
@click.option("--device", help="Where it is done [where the run was].")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def eval(
    folder: Path,
    sizes: str,
    trained: int | None,
    samples: int,
    recipe: str | None,
    changes: tuple[str, ...],
    device: str | None,
    as_json: bool,
) -> None:
    """Evaluate the models of the run in FOLDER at other sizes; the result is kept in it."""
    run = RunFolder(folder)
    wanted = _sizes(sizes)
    experiment = of_run(run, recipe, changes)
    if device is not None:
        experiment = replace(experiment, device=device)
    rows = evaluate(run, experiment, wanted, samples, trained)
    run.write_note(f"eval-{'largest' if trained is None else trained}", rows)
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
