"""From the name of a recipe, or the path of one's own file, to experiments.

Names are looked up in a list of the files of `algocapture/recipes`; nothing else of a name is
used. A path is a Python file of the user's: running it is running Python.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from algocapture.cli.recipe_files import names
from algocapture.config import ConfigError, difference, nearest, replace_field
from algocapture.experiment import Experiment, Recipe, stored_experiment
from algocapture.store import RunFolder


@dataclass(frozen=True)
class Loaded:
    """The experiments of a recipe by name ("" if there is only one), and the user's file."""

    name: str
    experiments: dict[str, Experiment]
    recipe: Recipe | None

    def only(self) -> Experiment:
        """The one experiment of the recipe."""
        if len(self.experiments) != 1:
            raise ConfigError(f"{self.name} has {len(self.experiments)} experiments, expected one")
        return next(iter(self.experiments.values()))


def load(name: str, changes: tuple[str, ...] = ()) -> Loaded:
    """A recipe by name or path, with FIELD=VALUE changes applied to all of its experiments."""
    if name in names():
        module = importlib.import_module("algocapture.recipes." + name.replace("/", "."))
        recipe = None
    elif name.endswith(".py"):
        path = Path(name).resolve()
        module = _execute(path)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        recipe = Recipe(path, digest, changes)
    else:
        raise ConfigError(
            f"there is no recipe {name!r}{nearest(name, names())}; a file of your own ends in .py"
        )
    experiments = _experiments(module, name)
    return Loaded(name, {key: changed(held, changes) for key, held in experiments.items()}, recipe)


def of_run(run: RunFolder, recipe: str | None, changes: tuple[str, ...] = ()) -> Experiment:
    """The experiment of a run, from its own configuration or from the user's file that made it."""
    if recipe is None:
        return stored_experiment(run)
    experiment = load(recipe, changes).only()
    if lines := difference(run.identity, experiment.identity()):
        raise ConfigError(
            f"{recipe} is not what made {run.path} (repeat its --set options if it had any):\n  "
            + "\n  ".join(lines)
        )
    return experiment


def changed(experiment: Experiment, changes: tuple[str, ...]) -> Experiment:
    """The experiment with changes such as `task.vocab=32` or `seeds=5` applied."""
    for change in changes:
        path, equals, value = change.partition("=")
        if not equals:
            raise ConfigError(f"--set {change!r}: write FIELD=VALUE, such as task.vocab=32")
        experiment = replace_field(experiment, path, value)
    return experiment


def _execute(path: Path) -> ModuleType:
    if not path.is_file():
        raise ConfigError(f"there is no recipe file {path}")
    spec = importlib.util.spec_from_file_location(f"recipe_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ConfigError(f"{path} failed: {_last_line(error, path)}") from error
    return module


def _experiments(module: ModuleType, name: str) -> dict[str, Experiment]:
    function = module.__dict__.get("experiment")
    if not callable(function):
        raise ConfigError(f"recipe {name} defines no function experiment()")
    try:
        made = function()
    except Exception as error:
        raise ConfigError(f"experiment() of {name} failed: {_last_line(error, None)}") from error
    if isinstance(made, Experiment):
        return {"": made}
    if isinstance(made, dict) and made and all(isinstance(e, Experiment) for e in made.values()):
        return {str(key): held for key, held in made.items()}
    raise ConfigError(
        f"experiment() of {name} returned {type(made).__name__}: return an Experiment, "
        "or a dict of names and Experiments"
    )


def _last_line(error: Exception, path: Path | None) -> str:
    """Type, message and the line of the user's file."""
    text = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if path is not None and f.filename == str(path)]
    return f"{text} (line {own[-1].lineno})" if own else text
