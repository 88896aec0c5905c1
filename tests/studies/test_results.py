"""Kept results: their pages are made of their data, byte for byte; the bars that they meet."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from algocapture.studies import Lemmas, Table1
from algocapture.studies.lemmas import OBJECTIVES

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
KEPT = [path.parent.name for path in sorted(RESULTS.glob("*/result.json"))]


def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_results", ROOT / "docs/make_results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", KEPT)
def test_the_page_is_its_data(name: str, tmp_path: Path) -> None:
    make = maker()
    place = make.take(RESULTS / name, tmp_path)
    written = make.make(place)
    assert len(written) > 2
    for path in written:
        kept = RESULTS / name / path.relative_to(place)
        assert kept.read_bytes() == path.read_bytes(), f"{kept}: python docs/make_results.py"


@pytest.mark.parametrize("name", KEPT)
def test_bars_are_met(name: str) -> None:
    study, rows = maker().study_of(RESULTS / name / "result.json")
    judged = [e for e in study.findings(rows).exponents if e.bar is not None]
    assert [e.what for e in judged if not e.met] == []


def test_a_search_finds_what_is_attained_and_no_more() -> None:
    """Known suprema: the Jacobian's norm is 2 (1 - |a|^2), for T tokens at most 2 (1 - 1/T)."""
    study = Lemmas(tokens=(2, 4), starts=8, steps=60, trials=50)
    rows = study.measure("softmax-jacobian")
    assert [row["found"] for row in rows] == pytest.approx([1.0, 1.5], rel=1e-3)
    for part in (*OBJECTIVES, "lipschitz", "inverse"):
        small = Lemmas(tokens=(2,), starts=4, steps=5, trials=20)
        assert all(0 < row["ratio"] <= 1 + 1e-9 for row in small.measure(part))
    with pytest.raises(ValueError, match="starts must be >= 1"):
        Lemmas(starts=0)


def test_arguments_of_table1() -> None:
    with pytest.raises(ValueError, match="draws must hold at least 3"):
        Table1(draws=(2, 4))
    with pytest.raises(ValueError, match="repeats must be >= 3"):
        Table1(repeats=1)
    with pytest.raises(ValueError, match="ridge must be > 0"):
        Table1(ridge=0.0)


@pytest.mark.slow
def test_a_small_table1_is_whole_and_its_counts_are_exact() -> None:
    study = Table1(
        lengths=(4096, 8192, 16384), timed_lengths=(8, 16, 32), kernel_lengths=(16, 24, 32),
        points=(1, 2, 4), draws=(64, 128, 256), depths=(1, 2, 3), repeats=3,
    )  # fmt: skip
    rows = {part: study.measure(part) for part in ("forward-counts", "kernel-costs")}
    for row in (*rows["forward-counts"], *rows["kernel-costs"]):
        if row.get("depth", 1) < 4:
            assert row["products"] == row["formula"], row
        assert row["products"] <= row["formula"]  # deeper roots lose rank to rounding
