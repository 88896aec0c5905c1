"""Standing in a results folder: what lies there is not run, whatever it is called."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from algocapture.experiment import drive
from algocapture.launch import Inline, Processes, Unit
from tests.experiment.tiny import tiny

ROOT = Path(__file__).resolve().parents[2]
EVIL = "open(__file__ + '.was-run', 'w').close()\n"
# A running generator's frames lead out of the namespace in which matplotlib evaluates this.
CYCLE = (
    "axes.prop_cycle: (L := [], L.append((L[0].gi_frame.f_back.f_back.f_builtins for _ in [0])), "
    "[*L[0]][0]['open']('was-run', 'w').close())\n"
)
MODULES = ("algocapture", "numpy", "torch", "json", "sitecustomize", "click", "safetensors")


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A run with Python files of the names that will be imported."""
    assert drive(tiny(seeds=1), tmp_path / "run", Inline())
    for name in MODULES:
        (tmp_path / "run" / f"{name}.py").write_text(EVIL)
    return tmp_path / "run"


def started(where: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A command as an installed algocapture would be called, standing somewhere."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-P", *command], cwd=where, env=environment, capture_output=True, text=True
    )


def was_run(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*was-run"))


def test_workers_do_not_import_from_where_they_stand(trap: Path, monkeypatch) -> None:
    """The very command that a launcher starts, of a unit with nothing left to do."""
    from algocapture.experiment.driver import argv
    from algocapture.store import RunFolder

    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    command = argv(RunFolder(trap), 0, None)
    monkeypatch.chdir(trap)
    (outcome,) = Processes().run([Unit("unit-000", lambda emit: 0, command)])
    assert outcome.code == 0, outcome.log
    assert was_run(trap) == []


def test_the_trap_works(trap: Path) -> None:
    """So that what was not run above could have been."""
    found = subprocess.run([sys.executable, "-c", "import click"], cwd=trap, capture_output=True)
    assert found.returncode == 0
    assert was_run(trap) == ["click.py.was-run"]


def test_matplotlib_would_run_what_lies_there(tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text(CYCLE)
    assert started(tmp_path, "-W", "ignore", "-c", "import matplotlib").returncode == 0
    if was_run(tmp_path) == []:
        pytest.skip("this matplotlib evaluates no settings")


@pytest.mark.slow
def test_settings_of_libraries_that_lie_there(tmp_path: Path) -> None:
    """matplotlib evaluates a part of `matplotlibrc`, numba is told where compiled code lies."""
    (tmp_path / "matplotlibrc").write_text(CYCLE)
    (tmp_path / ".numba_config.yaml").write_text("cache_dir: .\nopt: 0\n")
    code = (
        "import algocapture.report, algocapture.tasks, matplotlib, numba, os\n"
        "assert numba.core.config.CACHE_DIR == '', numba.core.config.CACHE_DIR\n"
        "assert os.getcwd() == os.environ['PWD_WAS'], os.getcwd()"
    )
    os.environ["PWD_WAS"] = str(tmp_path)
    try:
        ours = started(tmp_path, "-c", code)
    finally:
        del os.environ["PWD_WAS"]
    assert ours.returncode == 0, ours.stderr
    assert was_run(tmp_path) == []
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "matplotlibrc").unlink()
    (tmp_path / "fifo").rename(tmp_path / "matplotlibrc")  # who opens it hangs
    assert started(tmp_path, "-c", "import algocapture.report").returncode == 0


def test_a_recipe_is_a_file_that_is_named(trap: Path) -> None:
    """A class of the user's own in a configuration imports nothing: the file is asked for."""
    import json

    from tests.security.hostile import call, reseal

    config = json.loads((trap / "config.json").read_bytes())["body"]
    config["identity"]["task"] = {"type": "user:click"}
    assert reseal(trap, config)
    for arguments in (["resume", trap], ["eval", trap, "--sizes", "4"]):
        code, _, error = call(*arguments)
        assert code == 2
        assert "--recipe" in error
    assert was_run(trap) == []
