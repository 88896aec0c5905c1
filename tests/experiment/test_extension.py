"""A run that is extended ends like one that had the larger limits from the start."""

from dataclasses import replace

import pytest

from algocapture.experiment import drive, unit
from algocapture.launch import Inline
from algocapture.protocol import Limits
from algocapture.store import RunFolder, verify
from algocapture.store.unit import UnitFolder
from tests.crash import KillAt, in_child
from tests.test_crash import EXPERIMENT


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert drive(EXPERIMENT, folder, Inline())
    return (folder / "result.json").read_bytes()


SMALLER = {
    "fewer seeds": {"seeds": 1},
    "a smaller size": {"limits": Limits(largest=4, samples=10_000)},
    "fewer samples": {"limits": Limits(largest=6, samples=128)},
    "hardly any samples": {"limits": Limits(largest=6, samples=16)},
}


@pytest.mark.parametrize("less", SMALLER.values(), ids=SMALLER)
def test_extended_equals_begun_so(tmp_path, expected, less):
    begun = replace(EXPERIMENT, **less)
    assert drive(begun, tmp_path / "run", Inline())
    assert (tmp_path / "run" / "result.json").read_bytes() != expected
    assert drive(EXPERIMENT, tmp_path / "run", Inline())
    assert (tmp_path / "run" / "result.json").read_bytes() == expected
    assert verify(tmp_path / "run").ok


@pytest.mark.parametrize("rename", range(5, 11))
def test_extension_that_is_killed_and_damaged(tmp_path, expected, rename):
    """The newest checkpoint, which may know the outcome of a stage that a limit had ended, is
    lost: the one before, which has it still censored, undoes nothing."""
    begun = replace(EXPERIMENT, **SMALLER["hardly any samples"])
    assert drive(begun, tmp_path / "run", Inline())
    assert RunFolder(tmp_path / "run").stages(0)[-1]["outcome"] == "censored"

    def extend(folder):
        assert drive(EXPERIMENT, folder, Inline())

    assert in_child(extend, tmp_path / "run", KillAt("rename", rename)) < 0
    newest = max((tmp_path / "run" / "unit-000").glob("checkpoint-*"))
    newest.write_bytes(newest.read_bytes()[:100])
    assert drive(EXPERIMENT, tmp_path / "run", Inline(), notify=lambda message: None)
    assert (tmp_path / "run" / "result.json").read_bytes() == expected


def test_checkpoints_that_cost_much_wait(tmp_path, monkeypatch):
    """None is cheap here: all decisions are saved with the last; what a kill
    loses is done again, to the same bytes."""
    frugal = replace(EXPERIMENT, seeds=1, keep_models=False)
    assert drive(frugal, tmp_path / "often", Inline())
    commits = []
    commit = UnitFolder.commit
    monkeypatch.setattr(
        UnitFolder, "commit", lambda *a, **k: (commits.append(1), commit(*a, **k))[1]
    )
    monkeypatch.setattr(unit, "CHEAP", 0.0)
    monkeypatch.setattr(unit, "SHARE", 0.0)

    def go(folder):
        assert drive(frugal, folder, Inline())

    go(tmp_path / "seldom")
    assert len(commits) == 1
    assert in_child(go, tmp_path / "killed", KillAt("rename", 5)) < 0
    go(tmp_path / "killed")
    expected = (tmp_path / "often" / "result.json").read_bytes()
    for name in ("seldom", "killed"):
        assert (tmp_path / name / "result.json").read_bytes() == expected
        assert verify(tmp_path / name).ok
