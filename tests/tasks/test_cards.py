"""The page of task cards is what its script writes, and a picture has all the edges."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import pytest
import torch

from algocapture.report.instances import EDGE, SOURCE, TARGET, draw_graphs, polyline
from algocapture.tasks import Induction
from algocapture.tasks.card import card

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_a_picture_has_all_edges() -> None:
    points = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    edges = [[0, 1], [1, 2], [2, 3]]
    figure = draw_graphs([{"graph": {"points": points, "edges": edges}, "answer": 3.0}])
    (axes,) = figure.axes
    assert axes.get_title() == "answer 3"
    drawn = {line.get_color(): line.get_xydata()[:2].tolist() for line in axes.lines}
    assert drawn == {SOURCE: points[:2], EDGE: points[1:3], TARGET: points[2:]}


def test_a_broken_line_draws_only_edges() -> None:
    xs, ys = polyline([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], [[0, 1], [1, 2]])
    assert (xs[:2], ys[:2], xs[3:5], ys[3:5]) == ([0, 2], [1, 3], [2, 4], [3, 5])
    assert all(math.isnan(v) for v in (xs[2], ys[2], xs[5], ys[5]))


@pytest.mark.parametrize(("size", "instances"), [(10, 100), (20, 50), (500, 16)])
def test_statistics_of_large_instances_are_over_fewer(monkeypatch, size, instances) -> None:
    monkeypatch.setattr("algocapture.tasks.card.MOST_POSITIONS", 1000)
    content = card(Induction(), size, 1, torch.Generator().manual_seed(0), statistics=100)
    assert content["statistics"]["instances"] == instances


@pytest.mark.slow
def test_the_cards_are_current(tmp_path: Path) -> None:
    """After a change of a sampler: python docs/make_cards.py."""
    spec = importlib.util.spec_from_file_location("make_cards", DOCS / "make_cards.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(tmp_path)
    for path in sorted(tmp_path.iterdir()):
        assert path.read_bytes() == (DOCS / "tasks" / path.name).read_bytes(), path.name
