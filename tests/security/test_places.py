"""Forged study folders and published stores: one line each, nothing computed, nothing written."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algocapture.experiment.publishing import fetch
from algocapture.stats.findings import Chart, Findings
from algocapture.store import RunFolder, StoreError
from algocapture.store.publish import Published
from tests.security.hostile import call, complaint, complaints, copy_of, forge, seal
from tests.security.hostile_places import (
    STUDIES,
    STUDY_VERBS,
    complaints_of_store,
    forge_store,
    good_store,
    good_study,
)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Studies by name and a store."""
    root = tmp_path_factory.mktemp("good")
    for name in STUDIES:
        good_study(root / name, name)
    good_store(root / "store")
    return root


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=3, deadline=None)
@given(st.randoms(use_true_random=False))
def test_forged_studies_are_read_or_refused(good: Path, draw: random.Random) -> None:
    folder = copy_of(good / draw.choice(STUDIES), good / "forged")
    if forge(folder, draw):
        assert complaints(folder, STUDY_VERBS) == []


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=3, deadline=None)
@given(st.randoms(use_true_random=False))
def test_forged_stores_are_fetched_or_refused(good: Path, draw: random.Random) -> None:
    store = copy_of(good / "store", good / "at" / "store")
    if forge_store(store, draw):
        assert complaints_of_store(store) == []


# A study, its part, and what stands there instead of its rows.
ROWS = {
    "no rows": ("lemmas", "trace", None),
    "rows are numbers": ("lemmas", "trace", [1.0, 2.0]),
    "a field is missing": ("kernel_errors", "errors", [{"tokens": 3}]),
    "a number is a text": ("lemmas", "trace", [{"what": "x", "found": "much", "bound": 1.0}]),
    "a number is an object": ("lemmas", "trace", [{"what": "x", "found": {}, "bound": 1.0}]),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ROWS)
def test_rows_that_no_study_measured(good: Path, tmp_path: Path, name: str) -> None:
    """Each was a traceback."""
    which, part, rows = ROWS[name]
    folder = copy_of(good / which, tmp_path / "forged")
    path = next((folder / "parts").glob(f"{part}.json"), None)
    path = path or min((folder / "parts").iterdir())
    envelope = json.loads(path.read_bytes())
    assert seal(path, rows, envelope["place"], envelope["run"])
    assert complaints(folder, STUDY_VERBS) == []
    assert "are none that" in call("report", folder)[2]


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "x" * 65])
def test_names_of_tables_are_no_paths(name: str) -> None:
    with pytest.raises(ValueError, match="becomes a file's name"):
        Findings("title", {name: []})
    with pytest.raises(ValueError, match="becomes a file's name"):
        Findings("title", {"t": []}, charts=(Chart(name, "", "t", "x", "y", ""),))


@pytest.mark.parametrize("place", ["config.json", "result.json", "commit", "object"])
def test_pipes_and_holes_in_a_store(good: Path, tmp_path: Path, place: str) -> None:
    """A pipe would hang who reads it, a hole of a terabyte fill the memory."""
    store = copy_of(good / "store", tmp_path / "store")
    one = {"commit": "unit-000/commit-*", "object": "objects/*"}.get(place, place)
    paths = sorted(store.glob(one))
    for harm in (os.mkfifo, hole):
        for path in paths:
            path.unlink()
            harm(path)
        assert complaint("fetch", f"file://{store}", tmp_path / "copy") is None


def hole(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


def test_a_config_that_is_none_is_refused(good: Path, tmp_path: Path) -> None:
    """Before: `fetch` took its fields as they came."""
    store = copy_of(good / "store", tmp_path / "store")
    held = json.loads((store / "config.json").read_bytes())
    run = RunFolder(_fetched(store, tmp_path / "copy"))
    for body in ([], {"identity": {}}, held["body"] | {"recipe": 3}, held["body"] | {"x": 1}):
        assert seal(store / "config.json", body, "config", held["run"])
        with pytest.raises(StoreError, match="not a run's configuration"):
            fetch(f"file://{store}", tmp_path / "new", print)
        with pytest.raises(StoreError, match="not a run's configuration"):
            Published(f"file://{store}").attach(run)
    assert not (tmp_path / "new").exists()


def _fetched(store: Path, folder: Path) -> Path:
    assert fetch(f"file://{store}", folder, print)
    return folder


def test_the_forger_of_stores_forges(good: Path, tmp_path: Path) -> None:
    """Every kind of file is reached, and most of what it seals is read."""
    reached, fetched = set(), 0
    for seed in range(16):
        store = copy_of(good / "store", tmp_path / "store")
        before = {p.relative_to(store): p.read_bytes() for p in store.rglob("*") if p.is_file()}
        if not forge_store(store, random.Random(seed)):
            continue
        after = {p.relative_to(store): p.read_bytes() for p in store.rglob("*") if p.is_file()}
        reached |= {p.parts[0][:4] for p in after if before.get(p) != after[p]}
        fetched += call("fetch", f"file://{store}", tmp_path / f"copy-{seed}")[0] == 0
    assert {"conf", "meta", "resu", "unit", "obje"} <= reached
    assert fetched > 5
