"""`Experiment.run` and the results it returns: what the command line does, from Python."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from algocapture.experiment import Experiment, drive
from algocapture.launch import Inline, Launcher, Processes
from algocapture.report import PAGE
from algocapture.tasks import Induction
from tests.cli.calling import call
from tests.experiment.tiny import tiny


@dataclass(frozen=True)
class Own(Induction):
    """A class that a worker in another process could not know."""


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "driven"
    assert drive(tiny(), folder, Inline())
    return folder


@pytest.mark.parametrize(
    ("experiment", "launcher"),
    [
        (tiny(), Processes()),
        (tiny(seeds=1), Inline()),
        (tiny(device="cuda"), Inline()),
        (tiny(task=Own(vocab=3)), Inline()),
    ],
)
def test_the_launcher_fits_the_experiment(
    experiment: Experiment, launcher: Launcher, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    used: list[Launcher] = []
    monkeypatch.setattr(
        "algocapture.experiment.running.drive", lambda held, out, with_, **rest: used.append(with_)
    )
    experiment.run(tmp_path)
    experiment.run(tmp_path, Processes(cores=7))
    assert used == [launcher, Processes(cores=7)]


def test_a_run_is_stopped_and_goes_on_to_the_same_result(driven: Path, tmp_path: Path) -> None:
    started = tiny().run(tmp_path / "r", Inline(), time_limit=0)
    assert not (tmp_path / "r" / "result.json").exists()
    results = tiny().run(tmp_path / "r", Inline())
    assert started == results
    assert results.complete
    assert (tmp_path / "r" / "result.json").read_bytes() == (driven / "result.json").read_bytes()


def test_results_are_those_of_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tiny(seeds=3).run(tmp_path / "r", Inline())
    shown = json.loads(call(capsys, "verdict", tmp_path / "r", "--json")[1])
    verdict = results.verdict()
    assert (verdict.outcome, verdict.exponent) == (shown["outcome"], shown["exponent"])
    table = results.table()
    spent = {curve["seed"]: curve["spent"] for curve in shown["curves"]}
    assert [row["spent"] for row in table] == [p for seed in (0, 1, 2) for p in spent[seed]]
    assert {row["task.vocab"] for row in table} == {3}
    assert {"curve", "exponent", "cost", "error"} <= results.figures().keys()
    assert results.report() == tmp_path / "r" / PAGE
    assert results.report(tmp_path / "page.html").read_bytes() == results.report().read_bytes()
