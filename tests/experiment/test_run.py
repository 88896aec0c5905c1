"""Runs end to end: launchers, resuming, extending, the ledger, what is refused."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from algocapture.experiment import Experiment, drive, evaluate, load_model, stored_experiment
from algocapture.launch import Inline, Processes, Stop
from algocapture.learners.optimisers import AdamW
from algocapture.protocol import Limits, WholeInterval
from algocapture.report import summarise
from algocapture.stats import Look
from algocapture.store import RunFolder, StoreError, verify
from algocapture.tasks import Task
from tests.cases import TASKS, TaskCase
from tests.experiment.tiny import PROTOCOL, tiny


def result(folder: Path) -> bytes:
    return (folder / "result.json").read_bytes()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One finished run that the tests below read."""
    folder = tmp_path_factory.mktemp("run") / "tiny"
    assert drive(tiny(), folder, Inline())
    return folder


def test_launchers_give_the_same_result_byte_for_byte(finished: Path, tmp_path: Path) -> None:
    assert drive(tiny(), tmp_path / "p", Processes(cores=2))
    assert result(tmp_path / "p") == result(finished)


def test_stopping_at_every_turn_and_resuming_changes_nothing(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every second asking stops: a unit makes one step or look a session, whatever the clock."""
    asked = itertools.count(1)
    monkeypatch.setattr(Stop, "__call__", lambda self: next(asked) % 2 == 0)
    sessions = 0
    while not drive(tiny(), tmp_path / "r", Inline()):
        sessions += 1
        assert sessions < 500
    assert sessions > 5
    assert result(tmp_path / "r") == result(finished)


def test_more_seeds_and_a_larger_size_extend_a_run(finished: Path, tmp_path: Path) -> None:
    small = tiny(seeds=1, limits=Limits(largest=5, samples=20_000))
    assert drive(small, tmp_path / "r", Inline())
    assert result(tmp_path / "r") != result(finished)
    assert drive(tiny(), tmp_path / "r", Inline())
    assert result(tmp_path / "r") == result(finished)


def test_a_larger_limit_extends_a_censored_run(finished: Path, tmp_path: Path) -> None:
    assert drive(tiny(limits=Limits(largest=6, samples=64)), tmp_path / "r", Inline())
    outcomes = [s["outcome"] for s in RunFolder(tmp_path / "r").stages(0)]
    assert outcomes == ["censored"]
    assert drive(tiny(), tmp_path / "r", Inline())
    assert result(tmp_path / "r") == result(finished)


def test_another_identity_is_refused_with_the_difference(finished: Path) -> None:
    before = result(finished)
    with pytest.raises(StoreError, match=r"protocol\.delta: 0\.45 -> 0\.4"):
        drive(tiny(protocol=replace(PROTOCOL, delta=0.4)), finished, Inline())
    assert result(finished) == before


def test_precision_is_named_in_the_result_and_no_run_mixes_two(finished: Path) -> None:
    identity = json.loads(result(finished))["body"]["identity"]
    assert identity["learner"]["precision"] == "float32"
    lower = replace(tiny().learner, precision="bf16")
    with pytest.raises(StoreError, match=r'learner\.precision: "float32" -> "bf16"'):
        drive(tiny(learner=lower), finished, Inline())


def test_the_folder_verifies_and_describes_its_experiment(finished: Path) -> None:
    assert verify(finished).ok
    assert stored_experiment(RunFolder(finished)) == tiny()
    summary = summarise(finished)
    assert summary.complete
    for seed, curve in enumerate(summary.curves()):
        assert list(curve.sizes) == [4, 5, 6]
        assert curve.seed == seed
    assert summary.facts().baselines.keys() >= {"constant"}


def test_kept_weights_give_the_same_answers(finished: Path) -> None:
    """The module that passed T = 6, loaded again, has an error that its last look's interval
    holds, and it is not the module that passed T = 4."""
    run, experiment = RunFolder(finished), tiny()
    for seed in (0, 1):
        look = run.stages(seed)[-1]["looks"][-1]
        module = load_model(finished, seed, 6)
        batch = experiment.task.sample(6, 2000, torch.Generator().manual_seed(1))
        with torch.no_grad():
            error = experiment.task.error(module(batch.inputs).argmax(-1), batch).mean()
        assert look["low"] - 0.05 < error < look["high"] + 0.05
    rows = evaluate(run, experiment, [4, 8], samples=64)
    assert [(row["seed"], row["size"]) for row in rows] == [(0, 4), (0, 8), (1, 4), (1, 8)]
    assert all(row["low"] <= row["error"] <= row["high"] for row in rows)
    with pytest.raises(ValueError, match=r"size = 7 is no passed stage of seed 0; passed: \[4"):
        load_model(finished, 0, 7)


CUMULATIVE = [True, False]


@pytest.mark.parametrize("cumulative", CUMULATIVE, ids=["incremental", "whole-interval"])
@pytest.mark.parametrize("case", TASKS, ids=lambda case: type(case.task).__name__)
def test_ledger_is_what_was_sampled_for_training(
    case: TaskCase, cumulative: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted at the task itself: every instance sampled is in exactly one account, and those in
    the account "train" are those that reached the learner, however they were split."""
    sampled, trained = [], []
    experiment = _short(case.task, cumulative)
    sample = type(case.task).sample

    def counting(self: Task, size: int, n: int, generator: torch.Generator) -> object:
        sampled.append(n)
        return sample(self, size, n, generator)

    monkeypatch.setattr(type(case.task), "sample", counting)
    monkeypatch.setattr(type(case.task), "baselines", lambda *a: {})
    _fail_then_pass(monkeypatch)
    _count_steps(monkeypatch, trained)
    drive(experiment, tmp_path / "r", Inline())
    rows = RunFolder(tmp_path / "r").stages(0)[-1]["ledger"]
    by_account = {
        account: sum(row["samples"] for row in rows if row["account"] == account)
        for account in ("train", "evaluate", "baseline")
    }
    assert by_account["train"] == sum(trained) > 0
    assert by_account["train"] + by_account["evaluate"] == sum(sampled)


def _short(task: Task, cumulative: bool) -> Experiment:
    """A few steps, in micro-batches of uneven size."""
    smallest = task.spec.smallest
    shape = {"t0": smallest, "batch": 10, "probes": (1.5,), "grid": 3}
    protocol = replace(PROTOCOL, **shape) if cumulative else WholeInterval(
        **shape, test=PROTOCOL.test, baseline_samples=8
    )  # fmt: skip
    learner = replace(tiny().learner, micro_tokens=7 * smallest, model=_model(task))
    limits = Limits(largest=smallest + 2, samples=60)
    return tiny(task=task, protocol=protocol, learner=learner, limits=limits, seeds=1)


def _model(task: Task) -> object:
    from algocapture.models import Transformer

    position = "rope" if task.spec.inputs == "tokens" else "none"
    return Transformer(depth=1, width=8, heads=2, mlp=8, position=position)


def _fail_then_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every stage trains one step, whatever was learnt."""
    update, decisions = Look.update, itertools.cycle(["fail", "pass"])

    def decided(self: Look, errors: np.ndarray) -> str:
        update(self, errors)
        return next(decisions)

    monkeypatch.setattr(Look, "update", decided)


def _count_steps(monkeypatch: pytest.MonkeyPatch, trained: list[int]) -> None:
    from algocapture.learners.sgd import SGDLearner

    step = SGDLearner.step

    def counting(self: SGDLearner, batches: list) -> list:
        trained.extend(len(batch) for batch in batches if batch is not None)
        return step(self, batches)

    monkeypatch.setattr(SGDLearner, "step", counting)


def test_the_optimiser_goes_on_over_stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither warmed up again nor emptied: a fixed cost per stage would look like a logarithm."""
    steps: list[tuple[float, int, bool]] = []
    step = AdamW.step

    def watching(self: AdamW, lr: float, number: int) -> None:
        steps.append((lr, number, all(bool(t.any()) for t in self.slots["square"].values())))
        step(self, lr, number)

    monkeypatch.setattr(AdamW, "step", watching)
    _fail_then_pass(monkeypatch)
    experiment = tiny(seeds=1, limits=Limits(largest=10))
    drive(experiment, tmp_path / "r", Inline())
    assert len(RunFolder(tmp_path / "r").stages(0)) == len(steps) == 6  # one step for each stage
    rates = [0.01 * min(1, k / 5) for k in range(1, 7)]  # 5 steps of warm-up, all told
    assert steps == [(pytest.approx(rates[k]), k, k > 0) for k in range(6)]


def test_bad_configurations_name_the_field() -> None:
    for changes, message in [
        ({"seeds": 0}, r"seeds must be >= 1, got 0"),
        ({"seeds": 3, "population": 2}, r"seeds = 3 must be a multiple of population = 2"),
        ({"limits": Limits(largest=4)}, r"largest = 4 must exceed t0 = 4"),
        ({"protocol": replace(PROTOCOL, t0=3)}, r"t0 = 3 is below Induction's smallest size, 4"),
    ]:
        with pytest.raises(ValueError, match=message):
            tiny(**changes)


def test_result_holds_no_time_and_no_host(finished: Path) -> None:
    text = json.dumps(RunFolder(finished).read_result())
    meta = RunFolder(finished).read_meta()["sessions"][0]
    for fact in (meta["platform"], meta["begun"], str(finished)):
        assert fact not in text
    assert np.isfinite(meta["seconds"])
