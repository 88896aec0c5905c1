"""A trained module as one file, and back."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

from algocapture.config import from_json, to_json
from algocapture.experiment.probing import put_weights, stage_number, stored_experiment, training
from algocapture.experiment.running import Experiment
from algocapture.learners.isolation import GlobalGenerator
from algocapture.models import ModelConfig
from algocapture.rng import Seed
from algocapture.store import RunFolder, StoreError, read_export, write_export
from algocapture.types import TaskSpec, torch_generator


def export_model(
    folder: Path | str, seed: int, size: int, out: Path | str, experiment: Experiment | None = None
) -> dict[str, Any]:
    """Write the module of a seed as it passed `size`; what is said of it is returned.

    The file is plain safetensors. Its metadata says, as JSON under "algocapture", the model's
    configuration, the task and its spec, seed, size, and the error with its interval when the
    size was passed.
    """
    run = RunFolder(folder)
    held = experiment or stored_experiment(run)
    number = stage_number(run, seed, size)
    looks = run.stages(seed)[number].get("looks")
    if not looks or "error" not in looks[-1]:
        raise StoreError(f"stage {number} of seed {seed} in {run.path} has no look")
    look = looks[-1]
    config = training(held)
    body = {
        "model": to_json(config.model),
        "task": to_json(held.task),
        "spec": asdict(held.task.spec),
        "precision": config.precision,
        "seed": seed,
        "size": size,
        "error": {key: look[key] for key in ("error", "low", "high", "n")},
    }
    write_export(Path(out), run.load_model(seed, number), body, run=run.digest)
    return body


def load_exported(path: Path | str, model: ModelConfig | None = None) -> nn.Module:
    """The exported module in evaluation mode. A user's own module needs its configuration."""
    arrays, body = read_export(Path(path))
    try:
        config = from_json(body["model"]) if model is None else model
        spec = TaskSpec(**body["spec"] | {"marks": tuple(body["spec"]["marks"])})
    except (KeyError, TypeError) as error:
        raise StoreError(f"{path} does not say which model it holds") from error
    if not isinstance(config, ModelConfig):
        raise StoreError(f"{path} holds a {type(config).__name__}, not a model's configuration")
    with GlobalGenerator(Seed(0), torch.device("cpu")).use():  # a user's module may draw
        module = config.build(spec, torch_generator(Seed(0)))
    put_weights(module, arrays)
    return module.eval()
