"""Signals and time limits: exit code 3, the command that continues, the result unchanged."""

from __future__ import annotations

import itertools
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from algocapture.cli import driving, main
from algocapture.cli.progress import Progress
from algocapture.experiment import drive
from algocapture.launch import Inline
from algocapture.store import RunFolder
from tests.experiment.tiny import tiny

ROOT = Path(__file__).resolve().parents[2]
RECIPE = "from tests.experiment.tiny import tiny\n\n\ndef experiment():\n    return tiny()\n"
Call = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert drive(tiny(), folder, Inline())
    return (folder / "result.json").read_bytes()


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Call:
    """The command line in this process, in the repository's root; a recipe lies in tmp_path."""
    (tmp_path / "recipe.py").write_text(RECIPE)
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(driving, "draw", lambda summary, as_json: None)  # pages are tested apart

    def called(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as stop:
            main(list(words))
        return int(stop.value.code or 0), capsys.readouterr().err

    return called


def signal_when_training(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """As a person or a scheduler does: the driver's process is told, once, in mid-training."""
    watch, told = Progress.watch, []

    def telling(self: Progress, unit: str, event: dict) -> None:
        watch(self, unit, event)
        if event["event"] == "look" and event["samples"] > 0 and not told:
            told.append(unit)
            os.kill(os.getpid(), number)

    monkeypatch.setattr(Progress, "watch", telling)


SLOW = pytest.mark.slow
WAYS = [
    ("inline", signal.SIGTERM),
    ("inline", signal.SIGUSR1),
    ("inline", signal.SIGINT),
    ("processes", signal.SIGUSR1),
    pytest.param("processes", signal.SIGTERM, marks=SLOW),
    pytest.param("processes", signal.SIGINT, marks=SLOW),
]


@pytest.mark.parametrize(("launcher", "number"), WAYS)
def test_a_signal_ends_a_run_that_the_printed_command_continues(
    call: Call,
    tmp_path: Path,
    uninterrupted: bytes,
    monkeypatch: pytest.MonkeyPatch,
    launcher: str,
    number: int,
) -> None:
    recipe, folder = str(tmp_path / "recipe.py"), tmp_path / "run"
    with monkeypatch.context() as patch:
        signal_when_training(patch, number)
        status, shown = call("run", recipe, "--out", str(folder), "--launcher", launcher)
    assert status == 3
    assert not (folder / "result.json").exists()
    again = shlex.split(shown.splitlines()[-1])
    assert again == ["algocapture", "resume", str(folder), "--recipe", recipe]
    assert call(*again[1:], "--launcher", "inline", "--quiet")[0] == 0
    assert (folder / "result.json").read_bytes() == uninterrupted


def test_a_time_limit_does_the_same(
    call: Call, tmp_path: Path, uninterrupted: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that moves one second whenever it is asked, whatever machine this is."""
    words = ("run", str(tmp_path / "recipe.py"), "--out", str(tmp_path / "run"), "--set", "root=0")
    with monkeypatch.context() as patch:
        clock = SimpleNamespace(monotonic=itertools.count().__next__)
        patch.setattr("algocapture.launch.stop.time", clock)
        status, shown = call(*words, "--launcher", "inline", "--time-limit", "8")
    assert status == 3
    assert RunFolder(tmp_path / "run").seeds() == []  # the first unit was stopped in training
    assert (tmp_path / "run" / "unit-000" / "checkpoint-00000001.safetensors").exists()
    assert shown.splitlines()[-1].endswith("--recipe " + words[1] + " --set root=0")
    assert call(*words, "--launcher", "inline")[0] == 0  # the same command also continues
    assert (tmp_path / "run" / "result.json").read_bytes() == uninterrupted


EARLY = """
import os, signal, sys, time
from algocapture.cli import app

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where jobs are in the background

def load(name):  # as if torch were being imported
    os.kill(os.getpid(), signal.{number})
    time.sleep(60)

app.Verbs.load = staticmethod(load)
app.main(["{verb}", "quickstart"])
"""


@pytest.mark.parametrize(
    ("verb", "number", "status"),
    [
        ("run", "SIGTERM", 3),
        ("resume", "SIGUSR1", 3),
        ("run", "SIGINT", 3),
        ("status", "SIGTERM", -signal.SIGTERM),
        ("status", "SIGINT", 1),
    ],
)
def test_a_signal_before_the_run_has_begun(verb: str, number: str, status: int) -> None:
    """Nothing was done and nothing is lost: whoever asked may start it again."""
    body = EARLY.format(verb=verb, number=number)
    done = subprocess.run([sys.executable, "-c", body], cwd=ROOT, capture_output=True, timeout=60)
    assert done.returncode == status, done.stderr


def program(path: Path, text: str) -> None:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


@pytest.fixture
def cluster(tmp_path: Path) -> dict[str, str]:
    """An environment with stand-ins for SLURM: srun runs the command, scontrol takes notes."""
    programs = tmp_path / "bin"
    programs.mkdir()
    program(programs / "srun", f'echo "$1" > {tmp_path}/asked; shift; exec "$@"\n')
    program(programs / "scontrol", f'echo "$@" >> {tmp_path}/requeued\n')
    program(programs / "algocapture", f'exec {sys.executable} -m algocapture "$@"\n')
    path = f"{programs}:{os.environ['PATH']}"
    job = {"SLURM_JOB_ID": "4711", "SLURM_CPUS_PER_TASK": "4"}
    return os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)} | job


SIGNALLED = """
import os, signal
from pathlib import Path
from algocapture.cli.progress import Progress

watch, told = Progress.watch, Path({told!r})


def telling(self, unit, event):
    watch(self, unit, event)
    if event["event"] == "look" and event["samples"] > 0 and not told.exists():
        told.touch()
        os.kill(os.getpid(), signal.SIGUSR1)


Progress.watch = telling
"""


@SLOW  # two starts of Python and torch
def test_the_slurm_script_requeues_itself(
    tmp_path: Path, cluster: dict[str, str], uninterrupted: bytes
) -> None:
    (tmp_path / "recipe.py").write_text(RECIPE + SIGNALLED.format(told=str(tmp_path / "told")))
    folder = tmp_path / "run"
    job = ["bash", str(ROOT / "docs/slurm/requeue.sh"), str(tmp_path / "recipe.py"), str(folder)]
    job += ["--launcher", "inline", "--quiet"]
    turn = partial(subprocess.run, job, env=cluster, cwd=ROOT, capture_output=True, timeout=300)
    first = turn()
    assert first.returncode == 3, first.stderr
    assert (tmp_path / "requeued").read_text() == "requeue 4711\n"
    assert (tmp_path / "asked").read_text() == "--cpus-per-task=4\n"
    second = turn()
    assert second.returncode == 0, second.stderr
    assert (tmp_path / "requeued").read_text() == "requeue 4711\n"
    assert (folder / "result.json").read_bytes() == uninterrupted
