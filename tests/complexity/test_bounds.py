"""What forbids and what does not; the verb, with a run's verdict beside the bounds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from algocapture.complexity.bounds import (
    BOUNDS,
    FACTS,
    FORWARD,
    KERNEL,
    Fact,
    adapted,
    of_task,
    overall,
    standing,
    table,
)
from algocapture.config import from_json, registered
from algocapture.studies.epths import Epths
from algocapture.tasks import Task
from algocapture.tasks.card import find
from tests.cli.calling import call
from tests.report.runs import world, write_run


def upper(exponent: float, kind: str = "proved") -> Fact:
    return Fact("upper", exponent, kind, "an algorithm")  # type: ignore[arg-type]


def lower(exponent: float, kind: str = "proved", ours: bool = True) -> Fact:
    return Fact("lower", exponent, kind, "a reduction", ours)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        ([], "unknown"),
        ([upper(3)], "unknown"),  # an upper bound never forbids
        ([upper(9), upper(3)], "unknown"),
        ([upper(2)], "allowed"),
        ([upper(9), upper(1.5)], "allowed"),
        ([upper(1.0, "measured")], "unknown"),  # a finite range of sizes
        ([upper(9.0, "measured")], "unknown"),
        ([lower(2.5)], "forbidden"),
        ([lower(2.5), upper(3)], "forbidden"),
        ([lower(2.5, "conditional")], "unknown"),
        ([lower(2.5, ours=False)], "unknown"),  # in the worst case, not under the task's measure
        ([lower(2)], "unknown"),  # not above the bound
        ([lower(1), upper(1)], "allowed"),
    ],
)
def test_only_a_proved_lower_bound_under_the_measure_forbids(
    facts: list[Fact], outcome: str
) -> None:
    found = standing(FORWARD, facts)
    assert found.outcome == outcome
    assert found.reason


def test_a_lower_bound_is_not_measured() -> None:
    with pytest.raises(ValueError, match="cannot be measured"):
        lower(2, "measured")


def test_the_tasks_that_come_along() -> None:
    """NOTES 13 and 15: nothing is forbidden; recognition is unknown under T^2, graphs are far."""
    outcomes = {task: tuple(s.outcome for s in held) for task, held in table().items()}
    cfg = outcomes.pop("GrammarRecognition")
    assert cfg == ("allowed", "unknown")
    assert set(outcomes.values()) == {("allowed", "allowed")}
    assert set(FACTS) == set(registered(Task))  # type: ignore[type-abstract]
    assert overall(of_task("GrammarRecognition")) == "unknown"
    assert "clique" in of_task("GrammarRecognition")[1].reason
    for name, facts in FACTS.items():
        task = find(name)()
        assert task.exponents is not None
        best = min(f.exponent for f in facts if f.side == "upper" and f.kind == "proved")
        assert best == task.exponents.known
        for fact in facts:
            assert fact.side == "upper" or fact.exponent <= best


def test_polynomial_adaptation() -> None:
    assert [adapted(k) for k in (-1, 0, 0.5, 1)] == [3, 3, 4, 5]
    assert [bound.exponent for bound in BOUNDS] == [3, 2]
    assert "non-uniform" in KERNEL.rests_on


def test_the_verb(capsys: pytest.CaptureFixture[str]) -> None:
    code, shown, _ = call(capsys, "bounds", "--json")
    assert code == 0
    data = json.loads(shown)
    assert data["tasks"]["GrammarRecognition"]["outcome"] == "unknown"
    assert {t["outcome"] for t in data["tasks"].values()} == {"unknown", "allowed"}
    code, shown, _ = call(capsys, "bounds")
    assert "GrammarRecognition, forward pass: unknown" in shown
    assert "advice" in shown


@pytest.mark.parametrize("kappa", [0.0, 1.0])
def test_beside_a_run(kappa: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", world(kappa, 5, censored=0))
    verdict = json.loads(call(capsys, "verdict", run, "--json")[1])
    code, shown, _ = call(capsys, "bounds", run, "--json")
    assert code == 0
    data = json.loads(shown)
    assert data["verdict"] == verdict["outcome"]
    wanted = [adapted(k) for k in verdict["interval"]]
    assert data["adapted"]["kernel estimate"] == pytest.approx(wanted)
    code, shown, _ = call(capsys, "bounds", run)
    assert verdict["sentence"] in shown
    assert f"bounds T^{wanted[0]:.2f} to T^{wanted[1]:.2f}" in shown


def test_it_starts_without_torch_and_refuses_what_is_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "import sys, algocapture.cli.bounds; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
    status, _, error = call(capsys, "bounds", tmp_path)
    assert status != 0
    assert "is not a run" in error


def test_measured_exponents_are_those_of_the_results() -> None:
    """The one measured fact is the fit that docs/results/epths/result.json gives."""
    path = Path(__file__).parents[2] / "docs" / "results" / "epths" / "result.json"
    body = json.loads(path.read_text())["body"]
    study = from_json(body["identity"])
    assert isinstance(study, Epths)
    fits = {e.what: e.value for e in study.findings(body["parts"]).exponents}
    (fact,) = (f for f in FACTS["GrammarRecognition"] if f.kind == "measured")
    assert fact.exponent == round(fits["Earley: exponent of T"], 2)
