"""Panels draw the runs given; a verdict is judged without each seed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from algocapture.report import rows, summarise
from algocapture.report.panels import Panel, figure_panels, in_words, left_out
from algocapture.report.style import to_bytes
from algocapture.stats import judge
from tests.report.runs import world, write_run

ROOT = Path(__file__).parents[2]
FIG1 = ROOT / "docs" / "results" / "fig1"


def maker():
    spec = importlib.util.spec_from_file_location("make_figure1", ROOT / "docs/make_figure1.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs under the names of Figure 1's, as a sweep leaves them."""
    folder = tmp_path_factory.mktemp("sweep")
    write_run(folder / "induction", world(0.0, 5))
    write_run(folder / "sorting-100", world(0.0, 3))
    write_run(folder / "sorting-200", world(0.5, 3))
    write_run(folder / "shortest-path-4", world(2.0, 3, censored=0.6), finish=False)
    kept = tmp_path_factory.mktemp("fig1")
    maker().take(folder, kept)
    return kept


def test_lines_are_the_runs_curves(home: Path) -> None:
    one, other = (summarise(home / "runs" / name) for name in ("sorting-100", "sorting-200"))
    figure = figure_panels(
        [
            Panel("a", "Thin", [("V = 100", one), ("V = 200", other)], thin=True),
            Panel("b", "Means", [("", one)], scale="linear"),
        ]
    )
    thin, means = figure.axes
    drawn = [line.get_ydata() for line in thin.get_lines()]
    for run in (one, other):
        curves = rows.curve_rows(run)
        for seed in range(len(run.curves())):
            held = [row["relative"] for row in curves if row["seed"] == seed]
            assert any(np.array_equal(held, y) for y in drawn), seed
        held = [row["mean"] for row in rows.mean_rows(run)]
        assert any(np.array_equal(held, y) for y in drawn)
    assert thin.get_xscale() == "log"
    assert means.get_xscale() == "linear"
    assert [text.get_text() for text in thin.get_legend().get_texts()] == ["V = 100", "V = 200"]
    assert means.get_legend() is None


def test_the_verdict_without_each_seed(home: Path) -> None:
    run = summarise(home / "runs" / "sorting-200")
    found = left_out(run)
    curves = run.curves()
    for row, gone in zip(found, range(len(curves)), strict=True):
        rest = [curve for curve in curves if curve.seed != gone]
        assert row["exponent"] == judge(rest, 0.25, 0.95).exponent
    assert in_words([{"outcome": "captured"}] * 2 + [{"outcome": "undecided"}]) == (
        "captured 2 of 3, undecided 1 of 3"
    )


def test_files_are_the_same_bytes_again(home: Path) -> None:
    make = maker()
    first = {path.name: path.read_bytes() for path in make.make(home)}
    assert {path.name: path.read_bytes() for path in make.make(home)} == first
    table = first["summary.md"].decode()
    assert table.count("\n") == 6
    assert "(not finished)" in table.splitlines()[-1]
    assert b"induction,0,50" in first["curves.csv"]
    panel = Panel("a", "$x$ & <b>", [("", summarise(home / "runs" / "induction"))])
    assert b"<svg" in to_bytes(figure_panels([panel]), "svg")


@pytest.mark.skipif(not FIG1.exists(), reason="no run of Figure 1 is kept yet")
def test_the_kept_figure_is_its_data() -> None:
    kept = {path.name: path.read_bytes() for path in FIG1.glob("*.*")}
    assert {path.name: path.read_bytes() for path in maker().make(FIG1)}.items() <= kept.items()
