"""Sinks can neither fail nor slow a run."""

import sys
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from algocapture.experiment.sinks import QUEUE, Sink

TRAIN = {"event": "train", "seed": 0, "stage": 1, "samples": 128, "loss": 0.5}


def test_events_arrive_by_name_value_and_step(tmp_path: Path) -> None:
    logged: list[tuple[str, float, int]] = []
    with Sink(
        "own", tmp_path, print, lambda folder: nullcontext(lambda *row: logged.append(row))
    ) as sink:
        sink.watch("unit-000", TRAIN)
        sink.watch("unit-000", {"event": "stage", "seed": 1, "size": 8, "spent": 640})
        sink.watch("unit-000", {"event": "unit", "state": "ended"})
    assert logged == [("seed-0/stage-001/loss", 0.5, 128), ("seed-1/spent", 640, 8)]


@pytest.mark.parametrize("where", ["open", "log"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_an_error_silences_the_sink_and_nothing_else(
    tmp_path: Path, where: str, error: type[BaseException]
) -> None:
    said: list[str] = []

    def broken(*row: object) -> None:
        raise error("no network")

    opened = broken if where == "open" else lambda folder: nullcontext(broken)
    with Sink("own", tmp_path, said.append, opened) as sink:  # type: ignore[arg-type]
        for _ in range(10):
            sink.watch("unit-000", TRAIN)
    assert said == [f"own is switched off for this run: {error.__name__}('no network')"]


def test_a_library_that_hangs_costs_the_run_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("algocapture.experiment.sinks.PATIENCE", 0.05)
    forever = threading.Event()
    begun = time.perf_counter()
    with Sink(
        "own", tmp_path, print, lambda folder: nullcontext(lambda *row: forever.wait(60))
    ) as sink:  # type: ignore[arg-type]
        for _ in range(QUEUE + 100):
            sink.watch("unit-000", TRAIN)
    assert time.perf_counter() - begun < 30
    assert sink.dropped >= 98
    forever.set()


def test_unknown_sinks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"tensorboard, wandb, mlflow, got 'tensorbored'"):
        Sink("tensorbored", tmp_path, print)


@pytest.mark.parametrize(
    ("known", "variable", "mode"),
    [(False, None, "offline"), (True, None, None), (False, "disabled", None)],
)
def test_wandb_never_asks_for_credentials(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    known: bool,
    variable: str | None,
    mode: str | None,
) -> None:
    """A stand-in for the library: who has neither logged in nor said a mode is offline."""
    given: dict[str, object] = {}
    logged: list[dict[str, float]] = []

    def login(prompt: bool) -> bool:
        assert prompt is False
        return known

    def init(**fields: object) -> AbstractContextManager[object]:
        given.update(fields)
        return nullcontext(SimpleNamespace(log=logged.append))

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(login=login, init=init))
    monkeypatch.delenv("WANDB_MODE", raising=False)
    if variable is not None:
        monkeypatch.setenv("WANDB_MODE", variable)
    with Sink("wandb", tmp_path / "quickstart.logs" / "wandb", print) as sink:
        sink.watch("unit-000", TRAIN)
    assert (given["mode"], given["name"]) == (mode, "quickstart")
    assert logged == [{"seed-0/stage-001/loss": 0.5, "samples": 128}]


@pytest.mark.filterwarnings("ignore")
def test_mlflow_keeps_what_it_was_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library itself, where it is installed."""
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setattr("algocapture.experiment.sinks.PATIENCE", 120.0)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    said: list[str] = []
    with Sink("mlflow", tmp_path / "quickstart.logs" / "mlflow", said.append) as sink:
        sink.watch("unit-000", TRAIN)
    assert said == []
    (run,) = mlflow.search_runs(search_all_experiments=True, output_format="list")
    assert (run.info.run_name, run.info.status) == ("quickstart", "FINISHED")
    (metric,) = mlflow.MlflowClient().get_metric_history(run.info.run_id, "seed-0/stage-001/loss")
    assert (metric.value, metric.step) == (0.5, 128)


@pytest.mark.filterwarnings("ignore")
def test_tensorboard_keeps_what_it_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library itself, where it is installed."""
    name = "tensorboard.backend.event_processing.event_accumulator"
    accumulator = pytest.importorskip(name)
    monkeypatch.setattr("algocapture.experiment.sinks.PATIENCE", 120.0)
    said: list[str] = []
    with Sink("tensorboard", tmp_path, said.append) as sink:
        sink.watch("unit-000", TRAIN)
    assert said == []
    held = accumulator.EventAccumulator(str(tmp_path)).Reload()
    (point,) = held.Scalars("seed-0/stage-001/loss")
    assert (point.value, point.step) == (0.5, 128)
