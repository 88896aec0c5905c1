"""docs/slurm/ray.sh itself, with stand-ins for SLURM and a real Ray cluster on this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from algocapture.experiment import drive
from algocapture.launch import Inline
from algocapture.protocol import Limits
from tests.experiment.tiny import tiny
from tests.launch.test_ray import gone, raylets

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "docs" / "slurm" / "ray.sh"
RECIPE = """
from algocapture.protocol import Limits
from tests.experiment.tiny import tiny

def experiment():
    return tiny(seeds=2, limits=Limits(largest=30))
"""
SRUN = """
while [ $# -gt 0 ]; do
  case "$1" in --*) shift ;; -w) shift 2 ;; *) break ;; esac
done
exec "$@"
"""
SCONTROL = """
case "$1" in
  show) printf '127.0.0.1\\n127.0.0.1\\n' ;;
  requeue) echo "$2" >> {notes} ;;
esac
"""


def program(path: Path, text: str) -> None:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


@pytest.fixture
def job(tmp_path: Path) -> dict[str, str]:
    """The environment of a SLURM job on two nodes of one core."""
    programs = tmp_path / "bin"
    programs.mkdir()
    program(programs / "srun", SRUN)
    program(programs / "scontrol", SCONTROL.format(notes=tmp_path / "notes"))
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    of_slurm = {"SLURM_JOB_ID": "17", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_CPUS_PER_TASK": "1"}
    return os.environ | of_slurm | {"PATH": path, "PYTHONPATH": str(ROOT)}


def turn(job: dict[str, str], recipe: Path, folder: Path, interrupt: bool) -> int:
    """One job: the script from its start to its end."""
    environment = job | {"RAY_PORT": str(free_port())}
    with (
        open(folder.parent / "log", "a") as log,
        subprocess.Popen(
            [SCRIPT, recipe, folder], env=environment, stdout=log, stderr=log, cwd=ROOT
        ) as script,
    ):
        while interrupt and not list(folder.glob("seed-*/stage-001.json")):
            assert script.poll() is None, (folder.parent / "log").read_text()
            time.sleep(0.1)
        if interrupt:
            script.send_signal(signal.SIGUSR1)
        return script.wait(300)


@pytest.mark.slow
def test_the_script_warns_requeues_and_continues(job: dict[str, str], tmp_path: Path) -> None:
    before = set(raylets())
    recipe, folder = tmp_path / "mine.py", tmp_path / "run"
    recipe.write_text(RECIPE)
    assert turn(job, recipe, folder, interrupt=True) == 3, (tmp_path / "log").read_text()
    assert (tmp_path / "notes").read_text() == "17\n"
    assert gone(set(raylets()) - before)
    assert not (folder / "result.json").exists()
    assert turn(job, recipe, folder, interrupt=False) == 0, (tmp_path / "log").read_text()
    assert gone(set(raylets()) - before)
    assert drive(tiny(seeds=2, limits=Limits(largest=30)), tmp_path / "inline", Inline())
    expected = (tmp_path / "inline" / "result.json").read_bytes()
    assert (folder / "result.json").read_bytes() == expected
