"""Publishing to a URL: two folders stand for two nodes, and only the store is common to them."""

from __future__ import annotations

import itertools
import os
import threading
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

import algocapture.store.records as records
from algocapture.experiment import drive
from algocapture.experiment.publishing import fetch
from algocapture.launch import Inline, Stop
from algocapture.protocol import Limits
from algocapture.store import Checkpoint, RunFolder, StoreError, verify
from algocapture.store.publish import Published
from tests.experiment.tiny import tiny

EXPERIMENT = tiny(seeds=2, limits=Limits(largest=5))
IDENTITY = {"task": {"type": "Induction"}, "device": "cpu"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    assert drive(EXPERIMENT, folder, Inline())
    return folder


@pytest.fixture(params=["file", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return f"file://{tmp_path}/store/run"
    return f"memory://{tmp_path.name}/run"


def everything(folder: Path) -> dict[str, bytes]:
    """The files of a run that may not depend on where it ran."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and (path.name == "result.json" or path.parent.name.startswith("seed-"))
    }


def test_a_published_run_is_that_run_and_can_be_fetched(
    finished: Path, url: str, tmp_path: Path
) -> None:
    assert drive(EXPERIMENT, tmp_path / "a", Inline(), publish=url)
    assert everything(tmp_path / "a") == everything(finished)
    assert fetch(url, tmp_path / "b", print)
    assert everything(tmp_path / "b") == everything(finished)
    assert verify(tmp_path / "b").ok
    assert (tmp_path / "b/meta.json").read_bytes() == (tmp_path / "a/meta.json").read_bytes()


def test_another_node_continues_from_the_last_commit(
    finished: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node is lost at every stop: the next one has an empty folder, and never starts anew."""
    asked = itertools.count(1)
    monkeypatch.setattr(Stop, "__call__", lambda self: next(asked) % 3 == 0)
    for node in itertools.count():
        assert node < 100
        if drive(EXPERIMENT, tmp_path / f"node-{node}", Inline(), publish=url):
            break
    assert node >= 3
    assert everything(tmp_path / f"node-{node}") == everything(finished)


def test_what_was_done_before_is_published_too(finished: Path, url: str, tmp_path: Path) -> None:
    assert drive(tiny(seeds=1, limits=Limits(largest=5)), tmp_path / "a", Inline())
    assert drive(EXPERIMENT, tmp_path / "a", Inline(), publish=url)
    assert fetch(url, tmp_path / "b", print)
    assert everything(tmp_path / "b") == everything(finished)


def test_a_run_is_not_published_into_itself(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for place in (run, tmp_path / "other" / ".." / "run", run / "store"):
        with pytest.raises(StoreError, match="lies in the run's own folder"):
            drive(EXPERIMENT, tmp_path / "run", Inline(), publish=f"file://{place}")


def test_another_run_at_the_url_is_refused(url: str, tmp_path: Path) -> None:
    assert drive(EXPERIMENT, tmp_path / "a", Inline(), publish=url)
    before = Published(url).config()
    with pytest.raises(StoreError, match="root"):
        drive(tiny(root=9), tmp_path / "b", Inline(), publish=url)
    assert Published(url).config() == before
    with pytest.raises(StoreError, match="no published run"):
        fetch(f"{url}-none", tmp_path / "c", print)
    for bad in ("store/run", "/store/run", "run"):
        with pytest.raises(StoreError, match="is no URL"):
            Published(bad)
    assert Published("file://store/run").url == f"file://{Path.cwd()}/store/run"
    with pytest.raises(StoreError, match="Protocol not known: nothing"):
        drive(EXPERIMENT, tmp_path / "d", Inline(), publish="nothing://x")


# --- commits by hand: what damage, doubles and lost uploads leave


def committed(folder: Path, number: int, mark: float = 0.0) -> RunFolder:
    """A run of one unit with one seed after `number` stages."""
    with (
        RunFolder.enter(folder, IDENTITY, {"seeds": 1}) as run,
        run.unit(0, [0], exact=False) as unit,
    ):
        unit.restore()
        for k in range(1, number + 1):
            decided = [{"size": 8 + j, "mark": mark} for j in range(k)]
            arrays = {"w": np.array([mark, float(k)])}
            unit.commit(Checkpoint(arrays, {"k": k}, {0: decided}), models={0: arrays})
    return run


def push(published: Published, run: RunFolder) -> None:
    published.push(run, 0, {0: run.stages(0)})


def pulled(published: Published, folder: Path) -> Any:
    with RunFolder.enter(folder, IDENTITY, {"seeds": 1}, notify=lambda line: None) as run:
        with run.unit(0, [0], exact=False) as unit:
            published.pull(run, unit, 0)
            found = unit.restore()
        return None if found is None else (found.state["k"], found.stages[0], run)


def test_the_furthest_of_two_chains_is_taken_whole(url: str, tmp_path: Path) -> None:
    """Two workers of one unit that differ in bits: checkpoint, stages and weights stay together."""
    first, second = (
        committed(tmp_path / "a", 3, mark=1.0),
        committed(tmp_path / "b", 2, mark=2.0),
    )
    push(Published(url), first)
    push(Published(url), second)
    k, stages, run = pulled(Published(url), tmp_path / "c")
    assert k == 3
    assert {stage["mark"] for stage in stages} == {1.0}
    assert [run.load_model(0, s)["w"][0] for s in run.models(0)] == [1.0, 1.0, 1.0]
    push(Published(url), committed(tmp_path / "b", 4, mark=2.0))
    k, stages, run = pulled(Published(url), tmp_path / "c")  # replaces the shorter chain
    assert k == 4
    assert {stage["mark"] for stage in stages} == {2.0}
    assert [run.load_model(0, s)["w"][0] for s in run.models(0)] == [2.0] * 4


def test_local_state_that_is_further_is_kept(url: str, tmp_path: Path) -> None:
    push(Published(url), committed(tmp_path / "a", 2))
    committed(tmp_path / "b", 3)
    assert pulled(Published(url), tmp_path / "b")[0] == 3


def test_damage_falls_back_to_the_commit_before(url: str, tmp_path: Path) -> None:
    """Every object and commit in turn is cut, flipped, emptied or lost: never a wrong value."""
    one = Published(url)
    push(one, committed(tmp_path / "a", 2))
    push(one, committed(tmp_path / "a", 3))
    fs, root = fsspec.core.url_to_fs(url)
    places = sorted(name for name in fs.find(root))
    assert len(places) == 2 * (1 + 1) + 3  # two commits and checkpoints, three models
    for count, (place, harm) in enumerate(itertools.product(places, range(4))):
        whole = fs.cat_file(place)
        if harm == 3:
            fs.rm_file(place)
        else:
            flipped = whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]
            fs.pipe_file(place, [whole[: len(whole) // 2], flipped, b""][harm])
        found = pulled(Published(url), tmp_path / f"c{count}")
        fs.pipe_file(place, whole)
        assert found is None or found[0] in (2, 3)
        assert (found is None) == ("model" in role(place, fs, root))
    assert pulled(Published(url), tmp_path / "last")[0] == 3


def role(place: str, fs: Any, root: str) -> str:
    """What both commits need, without which there is nothing to continue from."""
    name = place.rpartition("/")[2]
    texts = [fs.cat_file(p).decode() for p in fs.find(root) if "commit-" in p]
    return "model" if sum(name in text for text in texts) == 2 else ""


@pytest.mark.parametrize("which", ["checkpoint", "weights", "commit"])
def test_damage_of_the_last_commit_is_mended(
    finished: Path, url: str, tmp_path: Path, which: str
) -> None:
    """Whoever finds it does the work again, and the store is whole afterwards."""
    assert drive(EXPERIMENT, tmp_path / "a", Inline(), publish=url)
    fs, root = fsspec.core.url_to_fs(url)
    last = max(fs.find(f"{root}/unit-001"))
    objects = records.decode_record(fs.cat_file(last), Path(last))["body"]["objects"]
    weights, checkpoint = sorted(objects, key=lambda place: place.startswith("unit"))[-2:]
    place = {"checkpoint": f"{root}/objects/{objects[checkpoint]}",
             "weights": f"{root}/objects/{objects[weights]}", "commit": last}[which]  # fmt: skip
    fs.pipe_file(place, fs.cat_file(place)[:-9])
    assert drive(EXPERIMENT, tmp_path / "b", Inline(), publish=url)
    assert fetch(url, tmp_path / "c", print)
    assert everything(tmp_path / "c") == everything(finished)


def test_old_checkpoints_are_removed_and_weights_kept(url: str, tmp_path: Path) -> None:
    one = Published(url)
    for k in range(1, 6):
        push(one, committed(tmp_path / "a", k))
    fs, root = fsspec.core.url_to_fs(url)
    places = fs.find(root)
    assert sum("commit-" in place for place in places) == 2
    assert sum("objects/" in place for place in places) == 2 + 5


def test_a_commit_names_no_path_outside_the_unit(url: str, tmp_path: Path) -> None:
    push(Published(url), committed(tmp_path / "a", 2))
    fs, root = fsspec.core.url_to_fs(url)
    (place,) = [p for p in fs.find(root) if "commit-" in p]
    envelope = records.decode_record(fs.cat_file(place), Path(place))
    body = envelope["body"]
    checkpoint = body["checkpoint"]
    for evil in ("../../evil", "/tmp/evil", "seed-0001/model-000.safetensors", "config.json"):
        objects = body["objects"] | {evil: body["objects"][checkpoint]}
        sealed = records.encode_record(
            body | {"objects": objects}, place=envelope["place"], run=envelope["run"]
        )
        fs.pipe_file(place, sealed)
        assert pulled(Published(url), tmp_path / f"b-{abs(hash(evil))}") is None
    assert not list(tmp_path.rglob("evil*"))


def test_a_store_that_is_down_stops_nobody_before_the_end(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"file://{tmp_path}/store"
    down = threading.Event()
    put = Published._put

    def failing(self: Published, place: str, data: bytes) -> None:
        if down.is_set() and "objects" in place:
            raise StoreError("the store does not answer")
        put(self, place, data)

    monkeypatch.setattr(Published, "_put", failing)
    down.set()
    with pytest.raises(Exception, match="the store does not answer"):
        drive(EXPERIMENT, tmp_path / "a", Inline(), publish=url)
    assert len(RunFolder(tmp_path / "a").stages(1)) == 2  # the work is done and kept
    down.clear()
    assert drive(EXPERIMENT, tmp_path / "a", Inline(), publish=url)
    assert fetch(url, tmp_path / "b", print)
    assert everything(tmp_path / "b") == everything(finished)
    assert os.listdir(tmp_path / "store")
