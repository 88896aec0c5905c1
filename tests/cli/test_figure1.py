"""Figure 1 at a size for two CPU cores."""

from __future__ import annotations

from pathlib import Path

import pytest

from algocapture.report import summarise
from tests.cli.calling import call

REDUCED = {
    "population": 1,
    "task.vocab": 32,
    "learner.training.model.width": 64,
    "learner.training.lr": 2e-3,
    "learner.training.compile": "false",
    "learner.training.precision": "float32",
    "protocol.batch": 128,
    "protocol.t0": 16,
    "limits.largest": 75,
}


@pytest.mark.slow  # a minute and a half
def test_induction_at_reduced_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As on the GPU: a long plateau, then each growth of T costs about a hundredth of it."""
    sets = [part for name, value in REDUCED.items() for part in ("--set", f"{name}={value}")]
    folder = tmp_path / "run"
    asked = ("fig1/induction", "--out", folder, "--device", "cpu", "--seeds", 3, *sets)
    status, _, problem = call(capsys, "run", *asked)
    assert status == 0, problem
    run = summarise(folder)
    verdict, reason = run.judged
    assert verdict is not None, reason
    assert verdict.outcome != "not captured"
    for curve in run.curves():
        assert not curve.censored
        assert curve.sizes[-1] > 4 * curve.sizes[0]
        assert curve.spent[-1] < 1.5 * curve.spent[0]
