"""`verdict` on several deltas and on a replication with a fixed budget."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from algocapture.experiment import drive
from algocapture.launch import Inline
from algocapture.protocol import Limits
from algocapture.protocol.pac import PacReplication
from algocapture.report import summarise
from algocapture.stats import Curve, judge_deltas
from algocapture.stats.pac import clopper_pearson
from algocapture.store import RunFolder
from tests.cli.calling import call
from tests.experiment.tiny import PROTOCOL, tiny

SIZES = [8, 12, 18, 27, 40, 60, 90]


def stages(first: float, power: float, seed: int) -> Iterator[dict[str, Any]]:
    spent = first
    for index, size in enumerate(SIZES):
        if index:
            spent += first * (size / 8) ** power * (1 + 0.02 * ((index + seed) % 3))
        outcome = {"outcome": "passed", "spent": spent, "spent_low": 0.99 * spent}
        yield {"index": index, "size": size} | outcome


def stored(path: Path, delta: float, first: float, power: float, **changes: object) -> Path:
    """Three seeds whose stage to T costs first * (log-growth) * (T/8)^power samples."""
    experiment = tiny(seeds=3, protocol=replace(PROTOCOL, delta=delta), **changes)
    with RunFolder.enter(path, experiment.identity(), experiment.extension()) as run:
        for seed in range(3):
            for index, body in enumerate(stages(first * (1 + 0.05 * seed), power, seed)):
                run.append_stage(seed, index, body)
    return path


def test_two_deltas_are_judged_together(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    loose = stored(tmp_path / "loose", 0.2, 1000, -0.5)
    tight = stored(tmp_path / "tight", 0.1, 2000, 1.5)
    status, out, _ = call(capsys, "verdict", loose, tight, "--json")
    found = json.loads(out)
    assert status == 0
    assert [run["outcome"] for run in found["runs"]] == ["captured", "not captured"]
    assert found["together"]["outcome"] == "not captured"  # captured only if at every delta
    assert found["together"]["powers"]["P0"] == pytest.approx(1.0)  # twice P0 at half of delta
    curves = {
        0.2: summarise(loose).curves(),
        0.1: summarise(tight).curves(),
    }
    assert isinstance(curves[0.2][0], Curve)
    assert found["together"]["outcome"] == judge_deltas(curves).outcome
    status, out, _ = call(capsys, "verdict", loose, tight)
    assert status == 0
    for text in (str(loose), "Captured at delta = 0.2", "Together: Not captured", "P0 as delta^-1"):
        assert text in out


def test_what_is_not_judged_together(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    one = stored(tmp_path / "one", 0.2, 1000, 0)
    again = stored(tmp_path / "again", 0.2, 1000, 0)
    other = stored(tmp_path / "other", 0.1, 1000, 0, margin=0.5)
    for folders, reason in [
        ((one, other), "differ in more than delta: margin: 0.25 -> 0.5"),
        ((one, again), "two runs have the same delta"),
    ]:
        status, out, _ = call(capsys, "verdict", *folders)
        assert status == 0
        assert f"Not judged together: {reason}" in " ".join(out.split()).replace(
            f"{one} and {other} ", ""
        )
        assert json.loads(call(capsys, "verdict", *folders, "--json")[1])["together"] is None


def test_a_replication_is_stated(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """End to end: two base models, three adaptations each to T = 5; counts are the records'."""
    protocol = PacReplication(
        t0=4, delta=0.45, batch=32, test=PROTOCOL.test, probes=(), baseline_samples=0,
        cost=500.0, replicates=3,
    )  # fmt: skip
    out = tmp_path / "pac"
    assert drive(tiny(protocol=protocol, limits=Limits(largest=5, samples=20_000)), out, Inline())
    status, shown, _ = call(capsys, "verdict", out, "--json")
    (statement,) = json.loads(shown)["statements"]
    assert (status, statement["size"]) == (0, 5)
    misjudged = PROTOCOL.test.beta / PROTOCOL.test.looks
    for seed in (0, 1):
        adapted = RunFolder(out).stages(seed)[1:]
        passed = sum(stage["outcome"] == "passed" for stage in adapted)
        assert statement["replicates"][str(seed)] == len(adapted) == 3
        assert statement["passed"][str(seed)] == passed
        success = clopper_pearson(passed, 3, 0.95)[0] - misjudged
        assert statement["beta"][str(seed)][1] == pytest.approx(min(1, 1 - success))
    status, shown, _ = call(capsys, "verdict", out)
    assert "adaptations of 500 log(T/T0) samples" in shown
    assert "alpha at beta <= 0.1 in" in shown
    status, _, error = call(capsys, "report", out)
    assert (status, error.count("\n")) == (2, 1)
    assert "has no curve" in error


def test_failures_count_only_where_the_interval_says_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    protocol = PacReplication(t0=4, delta=0.2, test=PROTOCOL.test, replicates=40)
    experiment = tiny(protocol=protocol, seeds=1)
    with RunFolder.enter(tmp_path / "r", experiment.identity(), experiment.extension()) as run:
        stage = {"index": 0, "size": 4, "outcome": "passed"}
        run.append_stage(0, 0, stage)
        for index in range(1, 41):
            clear = [{"low": 0.3 if index <= 30 else 0.1}]  # ten failures are not clear
            run.append_stage(0, index, {"size": 5, "outcome": "failed", "looks": clear})
    (statement,) = json.loads(call(capsys, "verdict", tmp_path / "r", "--json")[1])["statements"]
    low = clopper_pearson(30, 40, 0.95)[0] - 0.05
    assert statement["beta"]["0"] == [pytest.approx(low), 1.0]


def test_a_run_without_a_verdict_stops_no_other(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    good = stored(tmp_path / "good", 0.2, 1000, 0.0)
    alone = tmp_path / "alone"
    experiment = tiny(seeds=1)
    with RunFolder.enter(alone, experiment.identity(), experiment.extension()) as run:
        for index, body in enumerate(stages(1000, 0.0, 0)):
            run.append_stage(0, index, body)
    status, out, error = call(capsys, "verdict", alone, good)
    assert (status, error) == (1, "")
    assert "No verdict: one seed" in out
    assert "Captured at delta = 0.2" in out
    assert f"Not judged together: {alone} has no verdict" in out
    status, out, _ = call(capsys, "verdict", alone, good, "--json")
    found = json.loads(out)
    assert status == 1
    assert [run["outcome"] for run in found["runs"]] == [None, "captured"]
    assert "one seed" in found["runs"][0]["reason"]


def test_what_stands_beside_the_outcome_is_printed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = stored(tmp_path / "run", 0.2, 1000, 1.5)
    verdict = summarise(folder).verdict()
    out = call(capsys, "verdict", folder)[1]
    assert verdict.late_early is not None
    assert f"late over early: {verdict.late_early.ratio:.2f} (" in out
    assert "support of growth laws: power" in out
    assert "kernel T^(5.9" in out  # 3 + 2 kappa, kappa about 1.5
    assert "nothing is said about sizes above 90 or smaller errors" in out
