"""What a run would cost, before it is begun. P is what is to be measured, so only a bound."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import torch

from algocapture.experiment.running import Experiment
from algocapture.experiment.unit import is_present, threads
from algocapture.learners.base import Learner, LearnerConfig
from algocapture.learners.sgd import SGD
from algocapture.learners.stacked import Stacked
from algocapture.types import Batch, torch_generator


def estimate(experiment: Experiment) -> dict[str, Any]:
    """FLOPs of a step, timed at T0 on a population that is thrown away, and what the limits allow.

    Steps at larger sizes are assumed to take time in proportion to their FLOPs. Empty where they
    have none of their own: a kernel works at the next prediction, as much as P then asks for.
    Where the device is absent, as when a cluster's job is prepared on a laptop, there are FLOPs
    and no times.
    """
    present = is_present(experiment.device)
    if not present:
        experiment = replace(experiment, device="cpu")
    device = torch.device(experiment.device)
    seeds = [experiment.seed(number).child("estimate") for number in experiment.seeds_of(0)]
    sizes = experiment.protocol.sizes(experiment.limits.largest)
    with threads(experiment.threads):
        learner = _eager(experiment.learner).build(experiment.task, seeds, device)
        flops = [_forward(learner, experiment, size) for size in (sizes[0], sizes[-1])]
        n = experiment.protocol.batch if present else 1  # of a step for a GPU one is enough here
        seconds, trained = _timed_step(learner, experiment, sizes[0], n)
        trained *= experiment.protocol.batch // n
    if not (trained and flops[0]):
        return {}
    ratio = trained / flops[0]  # training against prediction, for the whole population's batch
    steps = experiment.limits.samples // experiment.protocol.batch
    growth = [flops[0] + (flops[1] - flops[0]) * (s - sizes[0]) / (sizes[-1] - sizes[0])
              for s in sizes]  # fmt: skip
    total = ratio * sum(growth) * steps
    return {
        "step_flops": trained,
        "step_seconds": seconds if present else None,
        "largest_step_flops": ratio * flops[1],
        "flops_at_most": total * experiment.units(),
        "hours_at_most": total / trained * seconds / 3600 if present else None,
    }


def _eager(learner: LearnerConfig) -> LearnerConfig:
    """To compile it would take longer than the one step that is timed: times are at most."""
    if isinstance(learner, Stacked):
        return replace(learner, training=replace(learner.training, compile=False))
    return replace(learner, compile=False) if isinstance(learner, SGD) else learner


def _forward(learner: Learner, experiment: Experiment, size: int) -> int:
    """FLOPs of predicting a step's batch, from one instance."""
    batch = _batch(experiment, size, 1)
    prediction = learner.predict([batch] * learner.members)[0]
    assert prediction is not None
    return prediction.flops * experiment.protocol.batch * learner.members


def _timed_step(learner: Learner, experiment: Experiment, size: int, n: int) -> tuple[float, int]:
    """The faster of two steps, since the first one warms up."""
    batch, taken = _batch(experiment, size, n), []
    for _ in range(2):
        begun = time.perf_counter()
        steps = learner.step([batch] * learner.members)
        taken.append(time.perf_counter() - begun)
    return min(taken), sum(step.flops for step in steps if step is not None)


def _batch(experiment: Experiment, size: int, n: int) -> Batch:
    seed = experiment.seed(0).child("estimate", size)
    return experiment.task.sample(size, n, torch_generator(seed, experiment.device))
