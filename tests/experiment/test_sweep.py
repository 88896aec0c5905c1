"""Sweeps: each run as by itself, failures apart, nothing begun that may not be entered."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from algocapture.experiment import drive, sweep
from algocapture.experiment.tally import Tally
from algocapture.launch import DONE, FAILED, Inline, Launcher, Outcome, Processes, Stop
from algocapture.protocol import Limits
from algocapture.store import LockedError, RunFolder, StoreError
from algocapture.store.sweep import driver_of, hold_sweep, read_progress, sweep_runs
from algocapture.tasks import Induction
from tests.experiment.tiny import tiny

TWO = {
    "a": tiny(seeds=1, limits=Limits(largest=5)),
    "b": tiny(seeds=2, limits=Limits(largest=4 + 1), task=Induction(vocab=4)),
}


@dataclass(frozen=True)
class Broken(Induction):
    """Its sampler fails in one size."""

    def sample(self, size, n, generator):
        if size > 4:
            raise RuntimeError("the sampler broke")
        return super().sample(size, n, generator)


def result(folder: Path) -> bytes:
    return (folder / "result.json").read_bytes()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs of TWO, each by itself."""
    folder = tmp_path_factory.mktemp("alone")
    for name, experiment in TWO.items():
        assert drive(experiment, folder / name, Inline())
    return folder


@pytest.mark.parametrize(
    "launcher",
    [Inline(), pytest.param(Processes(cores=2), marks=pytest.mark.slow)],
    ids=["inline", "processes"],
)
def test_each_run_is_as_by_itself(launcher: Launcher, alone: Path, tmp_path: Path) -> None:
    ended: list[str] = []
    swept = sweep(TWO, tmp_path / "s", launcher, finished=ended.append)
    assert (swept.complete, swept.left, swept.failed) == (("a", "b"), (), ())
    assert sorted(ended) == ["a", "b"]
    assert sweep_runs(tmp_path / "s") == ["a", "b"]
    for name in TWO:
        assert result(tmp_path / "s" / name) == result(alone / name)
        units = RunFolder(tmp_path / "s" / name).read_meta()["sessions"][0]["units"]
        assert units == {f"unit-{u:03d}": {"code": 0, "tries": 1} for u in range(TWO[name].seeds)}
    progress = read_progress(tmp_path / "s")
    assert progress is not None
    assert progress["share"] == 1.0
    assert [row["done"] for row in progress["runs"].values()] == [1, 2]


def test_stopped_at_every_turn_it_ends_the_same(
    alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = itertools.count(1)
    monkeypatch.setattr(Stop, "__call__", lambda self: next(asked) % 5 == 0)
    sessions = 0
    while (swept := sweep(TWO, tmp_path / "s", Inline())).left:
        sessions += 1
        assert sessions < 200
        assert not swept.failed
    assert sessions > 3
    assert [result(tmp_path / "s" / n) == result(alone / n) for n in TWO] == [True, True]


def test_a_failure_stops_no_other(alone: Path, tmp_path: Path) -> None:
    three = {"broken": tiny(seeds=2, task=Broken(vocab=3))} | TWO
    swept = sweep(three, tmp_path / "s", Inline())
    assert swept.complete == ("a", "b")
    assert [o.name for o in swept.failed] == ["broken/unit-000", "broken/unit-001"]
    assert all("the sampler broke" in o.log for o in swept.failed)
    assert [result(tmp_path / "s" / n) == result(alone / n) for n in TWO] == [True, True]
    progress = read_progress(tmp_path / "s")
    assert progress is not None
    assert progress["runs"]["broken"] == {"units": 2, "done": 0, "running": 0, "failed": 2}
    assert progress["failures"][0]["last"] == "RuntimeError: the sampler broke"
    units = RunFolder(tmp_path / "s/broken").read_meta()["sessions"][0]["units"]
    assert "the sampler broke" in units["unit-001"]["log"]


def test_nothing_begins_unless_every_run_may_be_entered(tmp_path: Path) -> None:
    with RunFolder.enter(tmp_path / "s" / "b", tiny(root=5).identity(), tiny().extension()):
        pass
    began: list[str] = []
    with pytest.raises(StoreError, match="holds another run"):
        sweep(TWO, tmp_path / "s", Inline(), watch=lambda unit, event: began.append(unit))
    assert began == []
    assert not (tmp_path / "s/a/unit-000").exists()


def test_a_run_in_use_is_left_and_the_others_are_done(tmp_path: Path) -> None:
    """Somebody resumes one run of the sweep by itself meanwhile."""

    def watch(unit: str, event: dict) -> None:
        if unit == "a/unit-000" and event.get("state") == "started":
            taken.__enter__()

    taken = RunFolder.enter(tmp_path / "s" / "b", TWO["b"].identity(), TWO["b"].extension())
    swept = sweep(TWO, tmp_path / "s", Inline(), watch=watch)
    taken.__exit__(None, None, None)
    assert (swept.complete, swept.left) == (("a",), ("b",))
    assert "is in use by process" in swept.failed[0].log


@pytest.mark.parametrize("name", ["", "../x", "/etc", "a/b", ".x", "a\nb", "é", "x" * 101])
def test_a_name_is_one_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="a run's name in a sweep"):
        sweep({name: tiny()}, tmp_path / "s", Inline())
    assert not (tmp_path / "s").exists()


def test_one_driver_and_no_foreign_folder(tmp_path: Path) -> None:
    with hold_sweep(tmp_path / "s", print):
        assert driver_of(tmp_path / "s") is not None
        with pytest.raises(LockedError, match="in use"):
            sweep(TWO, tmp_path / "s", Inline())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(StoreError, match=r"no folder of a sweep \(it holds 'thesis\.tex'\)"):
        sweep(TWO, tmp_path / "mine", Inline())
    with RunFolder.enter(tmp_path / "r", tiny().identity(), tiny().extension()):
        pass
    with pytest.raises(StoreError, match=r"holds 'config\.json'"):  # a run is no sweep
        sweep(TWO, tmp_path / "r", Inline())


def test_the_projected_end_is_what_is_left_over_the_pace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs of two units with two stages; the second has one stage from an earlier session."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    experiment = tiny(limits=Limits(largest=5))
    assert len(experiment.protocol.sizes(5)) == 2
    (tmp_path / "s").mkdir()
    for name in "ab":
        with RunFolder.enter(
            tmp_path / "s" / name, experiment.identity(), experiment.extension()
        ) as run:
            if name == "b":
                run.append_stage(0, 0, {"size": 4})
    tally = Tally(tmp_path / "s", {"a": 2, "b": 2})

    def body() -> dict:
        now[0] += 5
        tally.write()
        return read_progress(tmp_path / "s") or {}

    assert body()["seconds_left"] is None
    for name in "ab":
        tally.opened(name, [0, 1], experiment, RunFolder(tmp_path / "s" / name))
    assert body()["share"] == 0.5 / 4
    tally.watch("a/unit-000", {"event": "unit", "state": "started"})
    tally.watch("a/unit-000", {"event": "stage"})
    held = body()  # 15 s for half a unit; 3 are left
    assert held["share"] == 1 / 4
    assert held["seconds_left"] == 3 / (0.5 / 15)
    assert held["runs"]["a"] == {"units": 2, "done": 0, "running": 1, "failed": 0}
    tally.watch("a/unit-000", {"event": "unit", "state": "ended", "code": DONE})
    tally.watch("a/unit-001", {"event": "unit", "state": "started"})
    tally.watch("a/unit-001", {"event": "unit", "state": "ended", "code": FAILED})
    tally.failed(Outcome("a/unit-001", FAILED, 2, "at\nlast"))
    held = body()  # 20 s for one unit; one and a half of b are left, one failed
    assert held["seconds_left"] == 1.5 * 20
    assert held["runs"]["a"] == {"units": 2, "done": 1, "running": 0, "failed": 1}
    assert held["failures"] == [{"unit": "a/unit-001", "code": 1, "last": "last"}]


def test_more_seeds_extend_every_run(alone: Path, tmp_path: Path) -> None:
    fewer = TWO | {"b": replace(TWO["b"], seeds=1)}
    assert not sweep(fewer, tmp_path / "s", Inline()).left
    assert not sweep(TWO, tmp_path / "s", Inline()).left
    assert [result(tmp_path / "s" / n) == result(alone / n) for n in TWO] == [True, True]
