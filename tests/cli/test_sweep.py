"""A sweep from the command line: run, stop, resume, status, verdict, report, verify."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calling import call

RECIPE = """
from dataclasses import replace
from tests.experiment.tiny import PROTOCOL, tiny
from algocapture.protocol import Limits

def experiment():
    one = tiny(seeds=1, limits=Limits(largest=6))
    strict = replace(one, protocol=replace(PROTOCOL, delta=0.4))
    return {"one": one, "strict": strict}
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(RECIPE)
    return path


def test_a_sweep_from_first_to_last(
    capsys: pytest.CaptureFixture[str], recipe: Path, tmp_path: Path
) -> None:
    out = tmp_path / "s"
    rest = ("--out", out, "--launcher", "inline")
    plans = json.loads(call(capsys, "run", recipe, *rest, "--dry-run", "--json")[1])
    assert [Path(plan["folder"]) for plan in plans] == [out / "one", out / "strict"]

    status, _, error = call(capsys, "run", recipe, *rest, "--time-limit", 0)
    assert status == 3
    assert "The same command continues" in error
    status, shown, _ = call(capsys, "status", out)
    assert status == 0
    assert "0 of 2 runs are finished" in shown
    assert "nobody works on it" in shown

    status, _, error = call(capsys, "resume", out, "--recipe", recipe, "--launcher", "inline")
    assert status == 0, error
    assert "strict: " in error
    shown = call(capsys, "status", out)[1]
    assert "2 of 2 runs are finished" in shown
    assert "2 of 2 units done, 0 running, 0 failed; 100% of the work" in shown
    held = json.loads(call(capsys, "status", out, "--json")[1])
    assert held["driver"] is None
    assert held["runs"]["one"] == {
        "units": 1, "done": 1, "running": 0, "failed": 0, "finished": True,
    }  # fmt: skip
    verdicts = json.loads(call(capsys, "verdict", out, "--json")[1])
    assert set(verdicts["runs"]) == {"one", "strict"}
    status, shown, _ = call(capsys, "verify", out)
    assert status == 0
    assert shown.count("result: matches; all whole") == 2
    (out / "one" / "seed-0000" / "stage-000.json").write_text("{}")
    assert call(capsys, "verify", out)[0] == 1


def test_only_some_of_a_sweep(
    capsys: pytest.CaptureFixture[str], recipe: Path, tmp_path: Path
) -> None:
    rest = ("--out", tmp_path / "s", "--launcher", "inline", "--only")
    status, _, error = call(capsys, "run", recipe, *rest, "strickt")
    assert status == 2
    assert "did you mean strict?" in error
    assert "are one, strict" in error
    status, shown, _ = call(capsys, "run", recipe, *rest, "strict")
    assert status == 0
    assert "1 of 1 runs are complete" in shown
    assert not (tmp_path / "s/one").exists()
    status, _, error = call(capsys, "run", "quickstart", "--only", "x", "--out", tmp_path / "q")
    assert status == 2
    assert "are a single one" in error


def test_a_name_that_is_a_path_is_refused(
    capsys: pytest.CaptureFixture[str], recipe: Path, tmp_path: Path
) -> None:
    recipe.write_text(RECIPE.replace('"strict": strict', '"../strict": strict'))
    status, _, error = call(capsys, "run", recipe, "--out", tmp_path / "s")
    assert status == 2
    assert "'../strict'" in error
    assert not (tmp_path / "s").exists()


def test_failures_are_shown_at_the_end(
    capsys: pytest.CaptureFixture[str], recipe: Path, tmp_path: Path
) -> None:
    broken = RECIPE.replace("strict = replace(one", "strict = replace(one, task=Broken(vocab=3)")
    broken = broken.replace(
        "from tests.experiment.tiny import",
        "from tests.experiment.test_sweep import Broken\nfrom tests.experiment.tiny import",
    )
    recipe.write_text(broken)
    rest = ("--out", tmp_path / "s", "--launcher", "inline")
    status, shown, error = call(capsys, "run", recipe, *rest)
    assert status == 1
    assert "1 of 2 runs are complete" in shown
    assert "strict/unit-000 failed with exit code 1 after 1 tries" in error
    assert "RuntimeError: the sampler broke" in error
    shown = call(capsys, "status", tmp_path / "s")[1]
    assert "failed: strict/unit-000: RuntimeError: the sampler broke" in shown
