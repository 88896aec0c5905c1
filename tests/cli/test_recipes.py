"""Recipes as they are listed, and what `--dry-run` says of one before anything is done."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from algocapture.cli.recipe_files import names
from algocapture.experiment import drive, estimate
from algocapture.launch import Inline
from algocapture.store import RunFolder
from tests.cli.calling import call
from tests.experiment.tiny import tiny

ROOT = Path(__file__).resolve().parents[2]


def test_every_recipe_says_what_it_does_and_takes(capsys: pytest.CaptureFixture[str]) -> None:
    held = json.loads(call(capsys, "recipes", "--json")[1])
    assert [entry["recipe"] for entry in held] == names()
    assert "quickstart" in names()
    for entry in held:
        assert entry["about"].endswith((".", "?"))
        assert {"cpu", "gpu"} <= entry["cost"].keys()
        assert set(entry["cost"].values()) != {"not measured"}, entry["recipe"]
    assert all(name in call(capsys, "recipes")[1] for name in names())


def test_listing_loads_no_torch() -> None:
    code = (
        "import sys\nfrom algocapture.cli import main\n"
        "try: main(['recipes'])\nexcept SystemExit: pass\nassert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def test_dry_run_is_the_plan_and_does_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = (
        "run",
        "quickstart",
        "--set",
        "limits.largest=12",
        "--set",
        "task.vocab=5",
        "--dry-run",
    )
    (plan,) = json.loads(call(capsys, *words, "--json")[1])
    assert plan["sizes"] == [8, 10, 12]
    assert plan["experiment"]["task"] == {"type": "Induction", "vocab": 5}
    assert [unit["seeds"] for unit in plan["units"]] == [[0], [1], [2], [3], [4]]
    shown = call(capsys, *words)[1]
    for part in (plan["folder"], plan["identity"], "8, 10, 12", "expected  cpu: 2 cores", "FLOPs"):
        assert part in shown
    assert not list(tmp_path.iterdir())


def test_the_estimate_is_what_a_run_spends(tmp_path: Path) -> None:
    """FLOPs of a step, times the steps that the ledger of a real run counted at T0."""
    assert drive(tiny(seeds=1), tmp_path / "run", Inline())
    stage = RunFolder(tmp_path / "run").stages(0)[0]
    (spent,) = [row["flops"] for row in stage["ledger"] if row["account"] == "train"]
    steps = stage["spent"] / tiny().protocol.batch
    assert estimate(tiny(seeds=1))["step_flops"] * steps == pytest.approx(spent, rel=0.05)


BROKEN = """
from dataclasses import dataclass
from torch import nn
from algocapture.learners import SGD
from algocapture.models import ModelConfig
from tests.experiment.tiny import tiny
class Module(nn.Linear):
    def forward(self, inputs):
        raise KeyError("mine")
@dataclass(frozen=True)
class Own(ModelConfig):
    def build(self, spec, generator):
        return Module(2, 2)
def experiment():
    return tiny(learner=SGD(model=Own()))
"""


def test_a_module_that_fails_in_its_first_step(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(BROKEN)
    status, shown, error = call(capsys, "run", tmp_path / "own.py", "--dry-run")
    assert (status, shown, error.count("\n")) == (2, "", 1)
    assert "a first step failed: KeyError: 'mine' (line 9)" in error
    (tmp_path / "own.py").write_text(BROKEN.replace("Module(2, 2)", "nn.Flatten()"))
    status, shown, error = call(capsys, "run", tmp_path / "own.py", "--dry-run")
    assert (status, shown, error) == (
        2, "", "Error: Flatten has no parameters: there is nothing to train\n",
    )  # fmt: skip
    frozen = BROKEN.replace("Module(2, 2)", "nn.Linear(2, 2).requires_grad_(False)")
    (tmp_path / "own.py").write_text(frozen)
    status, shown, error = call(capsys, "run", tmp_path / "own.py", "--dry-run")
    assert error == "Error: Linear has only frozen parameters: there is nothing to train\n"


@pytest.mark.skipif(torch.cuda.is_available(), reason="the device would be here")
def test_a_plan_for_a_device_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("run", "quickstart", "--device", "cuda:7", "--dry-run")
    (plan,) = json.loads(call(capsys, *words, "--json")[1])
    assert plan["experiment"]["device"] == "cuda:7"
    assert plan["estimate"]["step_flops"] > 1e7
    assert plan["estimate"]["step_seconds"] is plan["estimate"]["hours_at_most"] is None
    assert "the device is not here" in call(capsys, *words)[1]
    status, _, error = call(capsys, "run", "quickstart", "--device", "banana", "--dry-run")
    assert (status, "device = 'banana' cannot be used here" in error) == (2, True)
