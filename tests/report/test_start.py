"""`verdict` and `report` start without torch and answer at once."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.runs import world, write_run

ROOT = Path(__file__).resolve().parents[2]
CALL = """
import sys
from algocapture.cli import main
try: main(sys.argv[1:])
except SystemExit as stop: assert stop.code == 0, stop.code
assert not {"torch", "scipy.stats"} & set(sys.modules)
"""


def seconds(*arguments: str) -> float:
    """Processor time of the command: what it would take on a machine with nothing else to do."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", CALL, *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("verb", ["verdict", "report"])
def test_answers_in_two_seconds(tmp_path: Path, verb: str) -> None:
    """Of two calls the quicker: the first may have to compile to byte code."""
    folder = write_run(tmp_path / "run", world(0.0, 1, censored=0), looks=30)
    assert seconds(verb, str(folder)) < 2 or seconds(verb, str(folder)) < 2
