"""TensorBoard, W&B and MLflow as optional listeners that can neither fail nor slow a run.

A sink is a queue and a thread: events are dropped when the queue is full, and the first error of
the other library silences the sink for the rest of the run, with one message.
"""

from __future__ import annotations

import importlib
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

Log = Callable[[str, float, int], None]  # name, value, step
Notify = Callable[[str], None]

QUEUE = 10_000  # events that may wait
PATIENCE = 5.0  # seconds at the end for what still waits


@contextmanager
def _tensorboard(folder: Path) -> Iterator[Log]:
    with importlib.import_module("torch.utils.tensorboard").SummaryWriter(str(folder)) as writer:

        def log(name: str, value: float, step: int) -> None:
            writer.add_scalar(name, value, step)
            writer.flush()

        yield log


@contextmanager
def _wandb(folder: Path) -> Iterator[Log]:
    """Offline where there are no credentials: it would ask for them on the run's terminal."""
    wandb = importlib.import_module("wandb")
    known = os.environ.get("WANDB_MODE") or wandb.login(prompt=False)
    folder.mkdir(parents=True, exist_ok=True)
    with wandb.init(
        project="algocapture",
        name=folder.parent.stem,
        dir=str(folder),
        mode=None if known else "offline",
    ) as run:
        yield lambda name, value, step: run.log({name: value, "samples": step})


@contextmanager
def _mlflow(folder: Path) -> Iterator[Log]:
    """Where MLFLOW_TRACKING_URI says, else in a database of the run's own."""
    mlflow = importlib.import_module("mlflow")
    if not os.environ.get("MLFLOW_TRACKING_URI"):
        folder.mkdir(parents=True, exist_ok=True)
        mlflow.set_tracking_uri(f"sqlite:///{folder.absolute()}/mlflow.db")
    mlflow.set_experiment("algocapture")
    with mlflow.start_run(run_name=folder.parent.stem) as run:
        client = mlflow.MlflowClient()
        yield lambda name, value, step: client.log_metric(run.info.run_id, name, value, step=step)


Opener = Callable[[Path], AbstractContextManager[Log]]

SINKS: Mapping[str, Opener] = {
    "tensorboard": _tensorboard,
    "wandb": _wandb,
    "mlflow": _mlflow,
}


class Sink:
    """A context manager whose `watch` takes the events of a run."""

    def __init__(
        self, name: str, folder: Path, notify: Notify, opened: Opener | None = None
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
            with self._open(self.folder) as log:
                while not (self._ended.is_set() and self._queue.empty()):
                    _send(log, self._queue.get())
        except BaseException as error:  # a library may end in an interrupt or exit of its own
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
