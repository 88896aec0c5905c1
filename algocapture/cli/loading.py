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
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from algocapture.cli.recipe_files import names
from algocapture.config import ConfigError, difference, digest, from_json, nearest, replace_field
from algocapture.experiment import FREE, Experiment, Recipe, stored_experiment, stored_study
from algocapture.store import RunFolder
from algocapture.store.sweep import check_name, sweep_runs
from algocapture.studies import Study

Held = TypeVar("Held", Experiment, Study)


@dataclass(frozen=True)
class Loaded:
    """The experiment of a recipe under the name "", or those of its sweep by their names, or its
    study; and the user's file."""

    name: str
    experiments: dict[str, Experiment]
    recipe: Recipe | None
    study: Study | None = None

    @property
    def is_sweep(self) -> bool:
        return "" not in self.experiments and self.study is None

    def select(self, wanted: tuple[str, ...]) -> Loaded:
        """The sweep of these of the experiments alone."""
        for name in wanted:
            if name not in self.experiments or not self.is_sweep:
                known = ", ".join(filter(None, self.experiments)) or "a single one"
                raise ConfigError(
                    f"--only {name!r}: the experiments of {self.name} are {known}"
                    f"{nearest(name, self.experiments)}"
                )
        return replace(self, experiments={n: self.experiments[n] for n in wanted})

    def only(self) -> Experiment:
        """The one experiment of the recipe."""
        if len(self.experiments) != 1:
            raise ConfigError(f"{self.name} has {len(self.experiments)} experiments, expected one")
        return next(iter(self.experiments.values()))

    def of(self, run: RunFolder) -> Experiment:
        """The experiment of this run: the same identity, from the same file."""
        same = [e for e in self.experiments.values() if digest(e.identity()) == run.digest]
        likeliest = (same or list(self.experiments.values()))[0]
        if lines := difference(run.identity, likeliest.identity()):
            raise ConfigError(
                f"{self.name} is not what made {run.path} (repeat its --set options if it had "
                "any):\n  " + "\n  ".join(lines)
            )
        run.require(likeliest.identity(), None if self.recipe is None else self.recipe.digest)
        return likeliest


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
    if (made := _study(module, name)) is not None:
        return Loaded(name, {}, recipe, changed(made, changes))
    experiments = _experiments(module, name)
    return Loaded(name, {key: changed(held, changes) for key, held in experiments.items()}, recipe)


def load_study(
    run: RunFolder, recipe: str | None, changes: tuple[str, ...] = ()
) -> tuple[Study, Recipe | None]:
    """The study of a folder: its configuration or, with an own class, the user's file again."""
    if recipe is None:
        return changed(stored_study(run), changes), None
    loaded = load(recipe, changes)
    if loaded.study is None:
        raise ConfigError(f"{recipe} defines no function study(), and {run.path} holds a study")
    return loaded.study, loaded.recipe


def load_run(
    run: RunFolder, recipe: str | None, changes: tuple[str, ...] = ()
) -> tuple[Experiment, Recipe | None]:
    """The experiment of a run: its configuration or, with own classes, the user's file again.

    Seeds and limits are the run's, unless changed.
    """
    if recipe is None:
        return changed(stored_experiment(run), changes), None
    loaded = load(recipe, changes)
    return _as_held(loaded, run, changes), loaded.recipe


def load_sweep(
    folder: Path, recipe: str | None, changes: tuple[str, ...] = ()
) -> tuple[dict[str, Experiment], Recipe | None]:
    """The experiments of a sweep's runs by name, as `load_run` finds each."""
    runs = {name: RunFolder(folder / name) for name in sweep_runs(folder)}
    if recipe is None:
        held = {name: changed(stored_experiment(run), changes) for name, run in runs.items()}
        return held, None
    loaded = load(recipe, changes)
    return {name: _as_held(loaded, run, changes) for name, run in runs.items()}, loaded.recipe


def _as_held(loaded: Loaded, run: RunFolder, changes: tuple[str, ...]) -> Experiment:
    """The file's experiment with the seeds and limits of the run, or as they are changed now."""
    held = {name: from_json(value, name) for name, value in run.extension.items()}
    experiment = replace(loaded.of(run), **held)
    free = tuple(change for change in changes if change.partition("=")[0].split(".")[0] in FREE)
    return changed(experiment, free)


def of_run(run: RunFolder, recipe: str | None, changes: tuple[str, ...] = ()) -> Experiment:
    """The experiment of a run alone."""
    return load_run(run, recipe, changes)[0]


def changed(experiment: Held, changes: tuple[str, ...]) -> Held:
    """The experiment or study with changes such as `task.vocab=32` or `seeds=5` applied."""
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
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{path} failed: {last_line(error, str(path))}") from error
    return module


def _study(module: ModuleType, name: str) -> Study | None:
    if "study" not in module.__dict__ or "experiment" in module.__dict__:
        return None
    made = _call(module, "study", name)
    if not isinstance(made, Study):
        raise ConfigError(f"study() of {name} returned {type(made).__name__}: return a Study")
    return made


def _call(module: ModuleType, function: str, name: str) -> Any:
    called = module.__dict__.get(function)
    if not callable(called):
        raise ConfigError(f"recipe {name} defines no function {function}()")
    try:
        return called()
    except (Exception, SystemExit) as error:
        line = last_line(error, str(module.__file__))
        raise ConfigError(f"{function}() of {name} failed: {line}") from error


def _experiments(module: ModuleType, name: str) -> dict[str, Experiment]:
    made = _call(module, "experiment", name)
    if isinstance(made, Experiment):
        return {"": made}
    if isinstance(made, dict) and made and all(isinstance(e, Experiment) for e in made.values()):
        return {check_name(key): held for key, held in made.items()}
    raise ConfigError(
        f"experiment() of {name} returned {type(made).__name__}: return an Experiment, "
        "or a dict of names and Experiments"
    )


def last_line(error: BaseException, path: str) -> str:
    """Type, message and the line of the user's file."""
    text = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    if isinstance(error, SyntaxError) and error.lineno:
        return f"{text} (line {error.lineno})"
    own = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
    return f"{text} (line {own[-1]})" if own else text
