"""The harness: truncation, its bound, exponents; schemes whose cost is known exactly."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from algocapture.complexity.epths import quantiles, success_low, trials, truncated
from algocapture.complexity.schemes import SCHEMES, Outcome, Scheme, find
from algocapture.studies.epths import Epths, part_of
from algocapture.tasks import Induction, ShortestPath, Sorting


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def heavy(tail: float) -> Scheme:
    """Right always; a share `tail` of instances costs 1,000 steps, the others 1."""

    def prepare(task, inputs):  # type: ignore[no-untyped-def]
        answers = task.solve(inputs).tolist()
        slow = np.random.default_rng(int(inputs.sum())).random(len(inputs)) < tail

        def solve(i: int, budget: int) -> tuple[int, int, bool]:
            cost = 1000 if slow[i] else 1
            return (answers[i], cost, True) if cost <= budget else (0, budget, False)

        return solve

    return Scheme("heavy", Induction, "a step", "0", prepare)


@pytest.mark.parametrize("delta", [0.5, 0.1, 0.03])
def test_truncation_fails_as_often_as_the_budget_ends_it(delta: float) -> None:
    """A twentieth of the instances needs 1,000 steps, the mean is 51: at delta 0.1 and 0.5 the
    budget (510, 102) ends exactly these, at 0.03 (1,700) none. |z| < 4 in three comparisons."""
    n, tail, task = 4000, 0.05, Induction(vocab=1000)
    cut = truncated(heavy(tail), task, 20, n, rng(1), mean=51.0, delta=delta)
    lost = 0.0 if delta < 0.05 else tail * (1 - 1 / 20)  # a random answer is seldom right
    z = (cut.right / n - (1 - lost)) / max(np.sqrt(lost * (1 - lost) / n), 1e-9)
    assert cut.budget == np.ceil(51 / delta)
    assert abs(z) < 5 if lost else cut.right == n
    assert cut.holds is (cut.low > 1 - delta)
    assert cut.holds


@pytest.mark.slow
def test_random_answers_are_of_the_tasks_own() -> None:
    """With no budget an answer is another instance's: right by chance, not never, not always."""
    task = ShortestPath()
    held = trials(find("breadth-first search"), task, 30, 400, rng(2), budget=0)
    assert not held.finished.any()
    assert 0.02 < held.right.mean() < 0.6
    sorting = trials(find("merge sort"), Sorting(), 30, 50, rng(3), budget=0)
    assert sorting.right.mean() == 0  # the whole sequence must be right


def test_bounds_of_success() -> None:
    assert success_low(0, 10, 0.95) == 0
    assert success_low(400, 400, 0.95) == pytest.approx(0.05 ** (1 / 400))
    low = success_low(90, 100, 0.95)
    assert stats.binom.sf(89, 100, low) == pytest.approx(0.05)


def test_quantiles_are_the_least_budget_that_is_enough() -> None:
    spent = np.array([5, 1, 9, 3, 7, 2, 8, 4, 10, 6])
    assert quantiles(spent, [0.5, 0.1, 0.05]) == [5, 9, 10]
    for delta, budget in zip((0.5, 0.1), quantiles(spent, [0.5, 0.1]), strict=True):
        assert (spent > budget).mean() <= delta < (spent > budget - 1).mean()


def test_arguments() -> None:
    with pytest.raises(ValueError, match="delta must lie in"):
        truncated(find("linear scan"), Induction(), 8, 4, rng(), mean=3.0, delta=0)
    with pytest.raises(ValueError, match="instances must be >= 2"):
        Epths(instances=1)
    with pytest.raises(ValueError, match="graph must hold at least 3"):
        Epths(graph=(4, 8))
    with pytest.raises(ValueError, match="deltas must lie"):
        Epths(deltas=(0.1, 1.0))


def test_a_small_study_finds_exact_laws() -> None:
    study = Epths(
        sequence=(512, 1024, 2048), graph=(64, 128, 256), grammar=(12, 24, 48),
        sparse=(8, 16, 32), instances=40, deltas=(0.5, 0.2, 0.1),
    )  # fmt: skip
    assert len(set(study.parts())) == len(SCHEMES) + 1
    names = ("sorting-counting-sort", "sorting-merge-sort", "grammarrecognition-cyk", "ambiguity")
    rows = {part: study.measure(part) for part in names}
    again = study.measure("sorting-merge-sort")
    assert again == rows["sorting-merge-sort"]
    found = {e.what: e for e in study.findings(rows).exponents}
    sizes = np.log([512, 1024, 2048])
    for name, cost in (("counting sort", lambda t: 2 * t + 200),
                       ("CYK", lambda t: 40 * (t**3 - t) / 6 + 20 * t)):  # fmt: skip
        fit = found[f"{name}: exponent of T"]
        at = sizes if name != "CYK" else np.log([12, 24, 48])
        expected = np.polyfit(at, np.log([cost(np.exp(t)) for t in at]), 1)[0]
        assert fit.value == pytest.approx(expected, abs=1e-9)
    assert found["merge sort: exponent of T"].met
    assert abs(found["counting sort: power of 1/delta in eta"].value) < 1e-9


def test_part_names() -> None:
    assert part_of(find("A* by straight lines")) == "shortestpath-a-by-straight-lines"


def test_the_outcome_of_a_scheme_is_judged_not_assumed() -> None:
    """A scheme that answers 0 whatever it is asked is found out."""

    def run(task, inputs):  # type: ignore[no-untyped-def]
        return lambda i, budget: (0, 1, True)

    lazy = Scheme("lazy", Induction, "a step", "0", run)
    assert isinstance(lazy.run(Induction(), torch.zeros(1, 4, dtype=torch.int64)), Outcome)
    assert trials(lazy, Induction(vocab=1000), 20, 200, rng(4)).right.mean() < 0.05
