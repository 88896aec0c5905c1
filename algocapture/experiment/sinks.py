"""TensorBoard, W&B and MLflow as optional listeners that can neither fail nor slow a run.

A sink is a queue and a thread: events are dropped when the queue is full, and the first error of
the other library silences the sink for the rest of the run, with one message.
"""

from __future__ import annotations

import importlib
import queue
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

Log = Callable[[str, float, int], None]  # name, value, step
Notify = Callable[[str], None]

QUEUE = 10_000  # events that may wait
PATIENCE = 5.0  # seconds at the end for what still waits


def _tensorboard(folder: Path) -> Log:
    writer = importlib.import_module("torch.utils.tensorboard").SummaryWriter(str(folder))

    def log(name: str, value: float, step: int) -> None:
        writer.add_scalar(name, value, step)
        writer.flush()

    return log


def _wandb(folder: Path) -> Log:
    wandb = importlib.import_module("wandb")
    run = wandb.init(project="algocapture", name=folder.parent.name, dir=str(folder))
    return lambda name, value, step: run.log({name: value, "samples": step})


def _mlflow(folder: Path) -> Log:
    mlflow = importlib.import_module("mlflow")
    mlflow.set_tracking_uri(folder.absolute().as_uri())
    mlflow.set_experiment("algocapture")
    client, run = mlflow.MlflowClient(), mlflow.start_run(run_name=folder.parent.name)
    return lambda name, value, step: client.log_metric(run.info.run_id, name, value, step=step)


SINKS: Mapping[str, Callable[[Path], Log]] = {
    "tensorboard": _tensorboard,
    "wandb": _wandb,
    "mlflow": _mlflow,
}


class Sink:
    """A context manager whose `watch` takes the events of a run."""

    def __init__(
        self, name: str, folder: Path, notify: Notify, opened: Callable[[Path], Log] | None = None
    ) -> None:
        if opened is None and name not in SINKS:
            raise ValueError(f"sink must be one of {', '.join(SINKS)}, got {name!r}")
        self.name, self.folder, self.notify = name, folder, notify
        self._open = opened or SINKS[name]
        self._queue: queue.Queue[dict[str, Any]] = queue.Queue(QUEUE)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"sink-{name}", daemon=True)
        self.dropped = 0

    def watch(self, unit: str, event: dict[str, Any]) -> None:
        try:
            self._queue.put_nowait(event)
        except queue.Full:
            self.dropped += 1

    def __enter__(self) -> Sink:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give what waits a few seconds; a library that hangs is left behind."""
        self._ended.set()
        self.watch("", {"event": "end"})  # wakes a thread that waits
        self._thread.join(PATIENCE)

    def _work(self) -> None:
        try:
            log = self._open(self.folder)
            while not (self._ended.is_set() and self._queue.empty()):
                _send(log, self._queue.get())
        except Exception as error:
            self.notify(f"{self.name} is switched off for this run: {error!r}")


def _send(log: Log, event: dict[str, Any]) -> None:
    seed = f"seed-{event.get('seed')}"
    match event["event"]:
        case "train":
            log(f"{seed}/stage-{event['stage']:03d}/loss", event["loss"], event["samples"])
        case "look":
            log(f"{seed}/stage-{event['stage']:03d}/error", event["error"], event["samples"])
        case "stage":
            log(f"{seed}/spent", event["spent"], event["size"])
