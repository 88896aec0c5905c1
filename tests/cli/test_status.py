"""`status`: what is decided, and who works on it now."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from algocapture.store import RunFolder
from tests.cli.calling import call
from tests.experiment.tiny import tiny


def test_workers_are_those_that_hold_a_unit(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    experiment = tiny()
    with RunFolder.enter(tmp_path / "r", experiment.identity(), experiment.extension()) as run:
        run.append_stage(0, 0, {"size": 4, "outcome": "passed", "spent": 128})
        with run.unit(1, [1]):
            found = json.loads(call(capsys, "status", run.path, "--json")[1])
            assert list(found["workers"]) == ["1"]
            assert f"process {os.getpid()} on" in found["workers"]["1"]
            assert "unit 1 is being worked on" in call(capsys, "status", run.path)[1]
        status, out, _ = call(capsys, "status", run.path)
    assert status == 0
    assert "worked on" not in out
    assert "seed 0: 1 stages, T = 4 passed, P = 128" in out
    assert "seed 1: no stage decided" in out


def test_a_dead_worker_is_none(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    experiment = tiny()
    with RunFolder.enter(tmp_path / "r", experiment.identity(), experiment.extension()) as run:
        if (child := os.fork()) == 0:
            run.unit(0, [0]).__enter__()
            os._exit(0)  # holds the unit until its last breath
        os.waitpid(child, 0)
        assert (run.path / "unit-000").is_dir()
        assert json.loads(call(capsys, "status", run.path, "--json")[1])["workers"] == {}
