"""README's recipe, typed off the page: from a file to a verdict, stopped, resumed, looked at."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.calling import call

ROOT = Path(__file__).resolve().parents[2]
REDUCED = (
    *("--set", "protocol.delta=0.45", "--set", "protocol.test.maximum=256"),
    *("--set", "protocol.probes=[]", "--set", "learner.warmup=1"),
)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first Python block of README."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    assert found is not None
    path = tmp_path_factory.mktemp("newcomer") / "my_recipe.py"
    path.write_text(found[1], "utf-8")
    return path


def test_it_is_short(recipe: Path) -> None:
    assert len(recipe.read_text("utf-8").splitlines()) < 60


def test_from_a_file_to_a_verdict(
    recipe: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two seeds, in processes of their own that load the file again; then one seed more."""
    monkeypatch.chdir(ROOT)  # workers import this tree
    out = recipe.parent / "run"
    small = (*REDUCED, "--set", "limits.largest=12")
    command = ("run", recipe, "--out", out, *small, "--seeds", 2, "--quiet")
    status, shown, _ = call(capsys, *command, "--launcher", "processes", "--json")
    assert status == 0
    found = json.loads(shown)
    assert [curve["sizes"] for curve in found["curves"]] == [[6, 8, 11], [6, 8, 11]]
    assert found["outcome"] in ("captured", "not captured", "undecided")
    assert (out / "report.html").exists()

    own = ("--recipe", recipe, *REDUCED)
    more = ("--set", "seeds=3", "--launcher", "inline", "--quiet", "--json")
    status, shown, _ = call(capsys, "resume", out, *own, *more)
    again = json.loads(shown)
    assert (status, again["curves"][:2]) == (0, found["curves"])  # its limits are the run's
    assert again["curves"][2]["sizes"] == [6, 8, 11]
    assert call(capsys, "verdict", out, "--json")[1] == shown
    assert call(capsys, "verify", out)[0] == 0
    status, shown, _ = call(capsys, "eval", out, *own, "--sizes", "6,8", "--samples", 64, "--json")
    assert (status, len(json.loads(shown))) == (0, 6)


def test_what_is_refused_of_a_finished_run(
    recipe: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = recipe.parent / "other"
    tiny = (*REDUCED, "--set", "limits.largest=8", "--seeds", 1, "--quiet")
    call(capsys, "run", recipe, "--out", out, *tiny, "--launcher", "inline")
    for verb in (("resume", out), ("eval", out, "--sizes", "8"), ("work", out, "--unit", 0)):
        status, _, error = call(capsys, *verb)
        assert (status, error.count("\n")) == (2, 1)
        assert "give that file with --recipe" in error
        status, _, error = call(capsys, *verb, "--recipe", recipe)
        assert status == 2
        assert "protocol.delta: 0.45 -> 0.05" in error
    changed = recipe.parent / "changed.py"
    changed.write_text(recipe.read_text("utf-8") + "# a comment\n", "utf-8")
    for verb in (("resume", out), ("eval", out, "--sizes", "8"), ("work", out, "--unit", 0)):
        status, _, error = call(capsys, *verb, "--recipe", changed, *REDUCED)
        assert (status, error.count("\n")) == (2, 1)
        assert "the recipe file changed since" in error
    moved = recipe.parent / "moved.py"
    moved.write_bytes(recipe.read_bytes())
    status, shown, _ = call(
        capsys, "eval", out, "--recipe", moved, *REDUCED, "--sizes", "8", "--json"
    )
    assert (status, len(json.loads(shown))) == (0, 1)


@pytest.mark.slow
def test_the_whole_recipe(
    recipe: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the reader runs it: every position is learnt anew, so the verdict is decisive."""
    monkeypatch.chdir(ROOT)
    out = recipe.parent / "whole"
    status, shown, _ = call(capsys, "run", recipe, "--out", out, "--quiet", "--json")
    assert (status, json.loads(shown)["outcome"]) == (0, "not captured")
