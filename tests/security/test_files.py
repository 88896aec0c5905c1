"""What a results folder may hold besides records: links, pipes, holes, names for terminals."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algocapture.cli.text import visible
from algocapture.config import digest
from algocapture.store import RunFolder, StoreError, files, records, verify
from algocapture.store.lock import Holder, _encode
from tests.cli.test_bad_input import GOOD, stored
from tests.security.hostile import CONTROL, VERBS, call, complaints

LIGHT = VERBS[:5]
RED = "\x1b[31mred\x1b[0m\x07"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return stored(tmp_path / "run", [GOOD] * 3)


PLACES = ["config.json", "seed-0000/stage-000.json", "result.json", "meta.json"]


@pytest.mark.parametrize("place", PLACES)
def test_pipes_links_and_holes(run: Path, place: str) -> None:
    """A pipe hangs who opens it, a link leads elsewhere, a hole of a terabyte takes no disk."""
    path = run / place
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    assert complaints(run, LIGHT) == []
    path.unlink()
    path.symlink_to("/dev/zero")
    assert complaints(run, LIGHT) == []
    path.unlink()
    with path.open("wb") as file:
        file.truncate(2**40)
    assert complaints(run, LIGHT) == []
    assert not verify(run).ok if place != "config.json" else True


def test_a_checkpoint_with_holes(run: Path) -> None:
    (run / "unit-000").mkdir()
    with (run / "unit-000" / "checkpoint-00000001.safetensors").open("wb") as file:
        file.truncate(2**42)
    assert [p.path for p in verify(run).problems] == ["unit-000/checkpoint-00000001.safetensors"]
    with RunFolder(run).unit(0, [0]) as unit:
        assert unit.restore() is None


def test_work_is_not_led_elsewhere(run: Path, tmp_path: Path) -> None:
    """A linked folder in a run: nothing is written or removed where it leads."""
    other = tmp_path / "other"
    other.mkdir()
    precious = [f"{files.TEMPORARY}mine", ".lock-000001", "checkpoint-00000001.safetensors"]
    for name in precious:
        (other / name).write_text("precious")
    for name in ("unit-000", "notes", "parts"):
        (run / name).symlink_to(other)
    with pytest.raises(StoreError, match="symbolic link"), RunFolder(run).unit(0, [0]):
        pass
    with pytest.raises(StoreError, match="symbolic link"):
        RunFolder(run).write_note("x", {})
    with pytest.raises(StoreError, match="symbolic link"):
        RunFolder(run).write_part("x", [])
    assert sorted(p.name for p in other.iterdir()) == sorted(precious)
    assert all(p.read_text() == "precious" for p in other.iterdir())


NAMES = [RED, "a\nb", "\u202edeht", "x" * 200, "--recipe=evil.py", "$(true)", "..;", "%s%n"]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names_for_terminals(run: Path, name: str) -> None:
    (run / name).write_text("foreign")
    (run / "seed-0000" / name).mkdir()
    assert complaints(run, LIGHT) == []
    foreign = run.rename(run.parent / f"run{name}"[:200])
    assert complaints(foreign, LIGHT) == []


def test_a_lock_that_names_a_terminal(run: Path) -> None:
    """Who works on a unit is what a lock file says, which anybody may have written."""
    unit = run / "unit-000"
    unit.mkdir()
    (unit / ".lock-000001").write_bytes(_encode(Holder(f"host{RED}", "boot", "", 1, "")))
    code, out, _ = call("status", run)
    assert code == 0
    assert "is being worked on by process 1 on host\\u001b[31mred" in out
    assert complaints(run, LIGHT) == []


@pytest.mark.parametrize("data", [b"", b"[" * 100_000, b'{"host": 1}', b"\xff", b"9" * 100_000])
def test_locks_that_are_none(run: Path, data: bytes) -> None:
    (run / ".lock-000007").write_bytes(data)
    assert complaints(run, LIGHT) == []


def test_seeds_without_end(tmp_path: Path) -> None:
    """`status` counts as far as the configuration says."""
    body = {"identity": {"type": "Experiment"}, "extension": {"seeds": 10**15}, "recipe": None}
    data = records.encode_record(body, place="config", run=digest(body["identity"]))
    (tmp_path / "config.json").write_bytes(data)
    assert call("status", tmp_path)[0] == 2
    assert complaints(tmp_path, LIGHT) == []


def test_values_without_end(tmp_path: Path) -> None:
    """Empty lists of 3 bytes take 64 in memory: they are counted before they are parsed."""
    (tmp_path / "config.json").write_bytes(b"[" + b"[]," * 2**24 + b"[]]")
    with pytest.raises(StoreError, match="values"):
        RunFolder(tmp_path)


def test_a_record_that_would_not_be_read_is_not_written(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(files, "MOST", 1000)
    with pytest.raises(StoreError, match="fewer seeds"):
        records.write_record(tmp_path / "x.json", "x" * 1000, place="x", run="r")
    assert not list(tmp_path.iterdir())


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(), max_size=40))
def test_what_is_printed_is_never_obeyed(text: str) -> None:
    shown = visible(text)
    assert not CONTROL.search(shown)
    assert visible(shown) == shown
    if text.isascii() and text.isprintable():
        assert shown == text


def test_sweeps_with_strangers(tmp_path: Path) -> None:
    """A sweep's folder: its progress may hold anything."""
    stored(tmp_path / "one", [GOOD] * 2)
    for held in (
        [],
        {"runs": []},
        {"runs": {"one": 3}},
        {"runs": {"one": {"done": "x", "units": None}}},
        {"share": "half", "seconds_left": [], "written": "now"},
        {"share": 0.5, "seconds_left": 1e300, "written": 1e300},
        {"failures": [1, {"unit": RED}, {"unit": RED, "last": RED}]},
        {"failures": 0.5},
    ):
        data = records.encode_record(held, place="progress", run="sweep")
        (tmp_path / "progress.json").write_bytes(data)
        assert complaints(tmp_path, [("status",), ("status", "--json"), ("verify",)]) == []
