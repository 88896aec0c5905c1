"""The trained modules of a run, for probing and for accuracy against size on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from algocapture.config import from_json
from algocapture.experiment.running import Experiment
from algocapture.experiment.unit import require_device, threads
from algocapture.learners.sgd import SGD, SGDLearner
from algocapture.learners.stacked import Stacked
from algocapture.stats.sequential import confidence_interval
from algocapture.store import RunFolder, StoreError
from algocapture.store.contents import need
from algocapture.types import torch_generator

CHUNK = 256  # instances evaluated at a time


def stored_experiment(run: RunFolder) -> Experiment:
    """The experiment that a run's configuration describes."""
    held = from_json(run.identity | run.extension)
    if not isinstance(held, Experiment):
        raise StoreError(f"{run.path} is a run of {type(held).__name__}, not of an Experiment")
    return held


def load_model(
    folder: Path | str, seed: int, size: int, experiment: Experiment | None = None
) -> nn.Module:
    """The module of a seed as it passed `size`, in evaluation mode.

    A run of the user's own task or module needs its `experiment`, which the file defines.
    """
    run = RunFolder(folder)
    return _learner(run, experiment or stored_experiment(run), seed, size).module(0)


def evaluate(
    run: RunFolder,
    experiment: Experiment,
    sizes: Sequence[int],
    samples: int,
    trained: int | None = None,
) -> list[dict[str, Any]]:
    """Error at other sizes without adaptation, a row for each seed and size.

    `trained` is the size after whose stage the weights are taken; None: the largest passed.
    Instances come from seeds of their own and are never counted as training.
    """
    if samples < 1:
        raise ValueError(f"samples must be >= 1, got {samples!r}")
    smallest = experiment.task.spec.smallest
    if not sizes or min(sizes) < smallest:
        raise ValueError(f"sizes = {list(sizes)}: one or more integers >= {smallest}")
    require_device(experiment.device)
    rows = []
    with threads(experiment.threads):
        for seed in run.seeds():
            last = _largest(run, seed) if trained is None else trained
            if last is None:
                continue
            learner = _learner(run, experiment, seed, last)
            rows += [_row(learner, experiment, seed, last, size, samples) for size in sizes]
    if not rows:
        raise StoreError(f"{run.path} has no kept weights: no stage was passed")
    return rows


def _row(
    learner: SGDLearner, experiment: Experiment, seed: int, trained: int, size: int, samples: int
) -> dict[str, Any]:
    task, device = experiment.task, torch.device(experiment.device)
    stream = experiment.seed(seed).child("evaluate", trained, size)
    errors = []
    for chunk, start in enumerate(range(0, samples, CHUNK)):
        generator = torch_generator(stream.child(chunk), device)
        batch = task.sample(size, min(CHUNK, samples - start), generator)
        (prediction,) = learner.predict([batch])
        assert prediction is not None
        errors.append(task.error(prediction.values, batch).cpu().numpy())
    joined = np.concatenate(errors)
    low, high = confidence_interval(joined)
    row = {"seed": seed, "trained": trained, "size": size, "n": samples}
    return row | {"error": float(joined.mean()), "low": low, "high": high}


def _largest(run: RunFolder, seed: int) -> int | None:
    return max(_passed(run, seed), default=None)


def _passed(run: RunFolder, seed: int) -> dict[int, int]:
    """The passed stages of a seed: size -> number."""
    stages = run.stages(seed)
    for stage in stages:
        need(stage, "size", "outcome")
    return {s["size"]: i for i, s in enumerate(stages) if s["outcome"] == "passed"}


def stage_number(run: RunFolder, seed: int, size: int) -> int:
    """The passed stage of a seed at a size."""
    if seed not in run.seeds():
        raise ValueError(f"seed = {seed!r} is not of this run; seeds: {run.seeds()}")
    passed = _passed(run, seed)
    if size not in passed:
        sizes = list(passed)
        raise ValueError(f"size = {size!r} is no passed stage of seed {seed}; passed: {sizes}")
    return passed[size]


def training(experiment: Experiment) -> SGD:
    """How the experiment's modules are trained; a kernel has none."""
    config = experiment.learner
    if isinstance(config, Stacked):
        config = config.training
    if not isinstance(config, SGD):
        raise ValueError(f"{type(config).__name__} has no module to load")
    return config


def put_weights(module: nn.Module, weights: Mapping[str, np.ndarray]) -> None:
    """Overwrite all parameters and buffers."""
    held = dict(module.named_parameters()) | dict(module.named_buffers())
    if held.keys() != weights.keys():
        raise StoreError(f"the weights are of another module: {held.keys() ^ weights.keys()}")
    with torch.no_grad():
        for name, tensor in held.items():
            if tuple(tensor.shape) != weights[name].shape:
                raise StoreError(f"the weights are of another module: {name} differs in shape")
            tensor.copy_(torch.from_numpy(weights[name]))


def _learner(run: RunFolder, experiment: Experiment, seed: int, size: int) -> SGDLearner:
    """A population of one with the weights of a passed stage."""
    config = training(experiment)
    weights = run.load_model(seed, stage_number(run, seed, size))
    stream = experiment.seed(seed).child("learner")
    learner = config.build(experiment.task, [stream], torch.device(experiment.device))
    put_weights(learner.module(0), weights)
    learner.module(0).eval()
    return learner
