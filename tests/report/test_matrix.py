"""Tasks x architectures: every run in its cell, named by what tells it from the others."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

from algocapture.report import page, summarise
from algocapture.report.matrix import architecture, labels, matrix, outcome
from algocapture.stats import Curve
from tests.report.runs import world, write_run

MODELS: dict[str, Any] = {
    "Transformer depth=2": {"type": "SGD", "model": {"type": "Transformer", "depth": 2}, "lr": 1},
    "Transformer depth=3": {"type": "SGD", "model": {"type": "Transformer", "depth": 3}, "lr": 2},
    "Recurrent": {"type": "SGD", "model": {"type": "user:Recurrent", "width": 8}, "lr": 1},
}
TASKS: dict[str, Any] = {
    "Sorting vocab=100": {"type": "Sorting", "vocab": 100},
    "Sorting vocab=200": {"type": "Sorting", "vocab": 200},
    "Induction": {"type": "Induction", "vocab": 9},
}


def test_every_run_is_in_its_cell(tmp_path: Path) -> None:
    curves = world(kappa=0.0)
    pairs = [pair for pair in product(TASKS, MODELS) if pair != ("Induction", "Recurrent")]
    found = [
        summarise(write_run(tmp_path / str(i), curves, task=TASKS[t], learner=MODELS[m]))
        for i, (t, m) in enumerate(pairs)
    ]
    short = [Curve([50.0], [100.0], censored=True, seed=0)]
    early = {"task": TASKS["Induction"], "learner": MODELS["Recurrent"]}
    found.append(summarise(write_run(tmp_path / "short", short, finish=False, **early)))
    held = matrix(found)
    assert held is not None
    assert held["architectures"] == list(MODELS)
    assert [row["task"] for row in held["rows"]] == list(TASKS)
    places = {
        (row["task"], model): [cell["place"] for cell in cells]
        for row in held["rows"]
        for model, cells in zip(held["architectures"], row["cells"], strict=True)
    }
    expected = [*pairs, ("Induction", "Recurrent")]
    assert places == {pair: [i + 1] for i, pair in enumerate(expected)}
    assert [outcome(s) for s in found] == ["captured"] * 8 + ["none"]
    last = held["rows"][-1]["cells"][-1][0]
    assert last["label"] == "No verdict (unfinished)"
    html = page([s.path for s in found])
    for place in range(1, 10):
        assert f'href="#run-{place}">' in html
        assert f'id="run-{place}"' in html


def test_one_cell_is_no_matrix(tmp_path: Path) -> None:
    """Runs that differ in delta or in how they are trained share a cell."""
    first = write_run(tmp_path / "a", world(kappa=0.0))
    second = write_run(tmp_path / "b", world(kappa=0.0), protocol={"delta": 0.01})
    held = [summarise(first), summarise(second)]
    assert matrix(held) is None
    assert "Tasks and architectures" not in page([first, second])
    third = summarise(write_run(tmp_path / "c", world(kappa=0.0), task=TASKS["Induction"]))
    table = matrix([*held, third])
    assert table is not None
    assert [len(row["cells"][0]) for row in table["rows"]] == [2, 1]
    assert [cell["remark"][:8] for cell in table["rows"][0]["cells"][0]] == ["δ = 0.05", "δ = 0.01"]


def test_a_population_is_the_model_it_trains() -> None:
    stacked = {"type": "Stacked", "training": MODELS["Recurrent"]}
    assert architecture(stacked) == architecture(MODELS["Recurrent"])
    kernel = {"type": "KernelLearner", "kernel": {"type": "InfiniteTransformer"}}
    assert architecture(kernel) == kernel
    assert architecture(None) == {}
    assert labels([{}, {"task": "A", "task.x": "1"}, {"task": "A"}], "task") == ["?", "A x=1", "A"]
