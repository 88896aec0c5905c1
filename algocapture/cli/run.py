"""`algocapture run`: a recipe from its name to its verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from algocapture.cli.driving import announce, go
from algocapture.cli.launching import Asked, launching
from algocapture.cli.loading import Loaded, last_line, load
from algocapture.cli.output import print_json
from algocapture.cli.recipe_files import entry
from algocapture.cli.studying import go_study, plan_study
from algocapture.cli.sweeping import go_sweep
from algocapture.cli.text import echo
from algocapture.config import ConfigError, digest, to_json
from algocapture.experiment import Experiment, Recipe, estimate

SINKS = ("tensorboard", "wandb", "mlflow")


@click.command()
@click.argument("recipe")
@click.option("--out", type=click.Path(path_type=Path), help="The run's folder [runs/RECIPE].")
@click.option("--seeds", type=int, help="How many seeds.")
@click.option("--device", help="Where the work is done, such as cpu or cuda.")
@launching
@click.option("--set", "changes", multiple=True, metavar="FIELD=VALUE",
              help="Change any field, such as task.vocab=32 or limits.largest=500.")  # fmt: skip
@click.option("--only", multiple=True, metavar="NAME", help="Of a sweep, these runs alone.")
@click.option("--time-limit", type=float, metavar="SECONDS", help="Then stop, resumable.")
@click.option("--dry-run", is_flag=True, help="Say what would be done and do nothing.")
@click.option("--sink", "sinks", multiple=True, type=click.Choice(SINKS), help="Log there too.")
@click.option("--quiet", is_flag=True, help="Only the verdict.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def run(
    recipe: str,
    out: Path | None,
    seeds: int | None,
    device: str | None,
    asked: Asked,
    changes: tuple[str, ...],
    only: tuple[str, ...],
    time_limit: float | None,
    sinks: tuple[str, ...],
    dry_run: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run RECIPE, a name (`algocapture recipes`) or a Python file of your own.

    A recipe of several experiments is a sweep: their units run side by side, each experiment
    in a folder of its name.
    A file is run as Python: only run files that you trust. A run that was stopped is continued
    by the same command or by `algocapture resume`.
    """
    if seeds is not None:
        changes += (f"seeds={seeds}",)
    if device is not None:
        changes += (f"device={device}",)
    loaded = load(recipe, changes)
    if (study := loaded.study) is not None:
        folder = out or _base(loaded)
        if dry_run:
            plan_study(study, folder, as_json)
            return 0
        return go_study(study, folder, loaded.recipe, asked, time_limit, quiet, as_json)
    if only:
        loaded = loaded.select(only)
    folder = out or _base(loaded)
    if dry_run:
        _plan(loaded, {name: folder / name for name in loaded.experiments}, as_json)
        return 0
    rest = (folder, loaded.recipe, asked, time_limit, quiet, as_json, sinks)
    if loaded.is_sweep:
        return go_sweep(loaded.experiments, *rest)
    return go(loaded.only(), *rest)


def _base(loaded: Loaded) -> Path:
    return Path("runs") / (Path(loaded.name).stem if loaded.recipe else loaded.name)


def _plan(loaded: Loaded, folders: dict[str, Path], as_json: bool) -> None:
    takes = {} if loaded.recipe else entry(loaded.name)["cost"]
    plans = [
        _one(held, folders[name], loaded.recipe) | {"takes": takes}
        for name, held in loaded.experiments.items()
    ]
    if as_json:
        print_json(plans)
        return
    for plan in plans:
        echo(announce(plan))


def _one(experiment: Experiment, folder: Path, recipe: Recipe | None) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "identity": digest(experiment.identity())[:16],
        "experiment": json.loads(json.dumps(to_json(experiment))),
        "units": [
            {"unit": unit, "seeds": experiment.seeds_of(unit), "threads": experiment.threads}
            for unit in range(experiment.units())
        ],
        "estimate": _estimate(experiment, recipe),
        "sizes": experiment.protocol.sizes(experiment.limits.largest),
    }


def _estimate(experiment: Experiment, recipe: Recipe | None) -> dict[str, Any]:
    if recipe is None:
        return estimate(experiment)
    try:
        return estimate(experiment)
    except ValueError:  # a message already
        raise
    except Exception as error:  # whatever the user's own module does
        line = last_line(error, str(recipe.path))
        raise ConfigError(f"{recipe.path}: a first step failed: {line}") from error
