"""Sinks can neither fail nor slow a run."""

import threading
import time
from pathlib import Path

import pytest

from algocapture.experiment.sinks import PATIENCE, QUEUE, Sink

TRAIN = {"event": "train", "seed": 0, "stage": 1, "samples": 128, "loss": 0.5}


def test_events_arrive_by_name_value_and_step(tmp_path: Path) -> None:
    logged: list[tuple[str, float, int]] = []
    with Sink("own", tmp_path, print, lambda folder: lambda *row: logged.append(row)) as sink:
        sink.watch("unit-000", TRAIN)
        sink.watch("unit-000", {"event": "stage", "seed": 1, "size": 8, "spent": 640})
        sink.watch("unit-000", {"event": "unit", "state": "ended"})
    assert logged == [("seed-0/stage-001/loss", 0.5, 128), ("seed-1/spent", 640, 8)]


@pytest.mark.parametrize("where", ["open", "log"])
def test_an_error_silences_the_sink_and_nothing_else(tmp_path: Path, where: str) -> None:
    said: list[str] = []

    def broken(*row: object) -> None:
        raise RuntimeError("no network")

    opened = broken if where == "open" else lambda folder: broken
    with Sink("own", tmp_path, said.append, opened) as sink:  # type: ignore[arg-type]
        for _ in range(10):
            sink.watch("unit-000", TRAIN)
    assert said == ["own is switched off for this run: RuntimeError('no network')"]


def test_a_library_that_hangs_costs_the_run_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("algocapture.experiment.sinks.PATIENCE", 0.05)
    forever = threading.Event()
    begun = time.perf_counter()
    with Sink("own", tmp_path, print, lambda folder: lambda *row: forever.wait(60)) as sink:  # type: ignore[return-value]
        for _ in range(QUEUE + 100):
            sink.watch("unit-000", TRAIN)
    assert time.perf_counter() - begun < PATIENCE
    assert sink.dropped >= 98
    forever.set()


def test_unknown_sinks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"tensorboard, wandb, mlflow, got 'tensorbored'"):
        Sink("tensorbored", tmp_path, print)
