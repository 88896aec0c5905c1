"""A learner whose error is known: it falls with the samples it was given, by a law of ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from algocapture.learners.base import Learner, LearnerConfig, Prediction, Step
from algocapture.rng import Seed
from algocapture.tasks.base import Task
from algocapture.types import Batch, TaskSpec, torch_generator


@dataclass(frozen=True)
class Coin(Task):
    """The answer is the first of `size` fair bits."""

    @property
    def spec(self) -> TaskSpec:
        return TaskSpec(inputs="tokens", output="class", vocab=2, classes=2, smallest=2)

    def sample(self, size: int, n: int, generator: torch.Generator) -> Batch:
        inputs = torch.randint(2, (n, size), generator=generator, device=generator.device)
        targets = self.solve(inputs)
        return Batch(inputs, targets, torch.ones_like(targets, dtype=torch.bool), size)

    def solve(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs[:, 0].clone()


class KnownError(Learner):
    """Member m at size T errs on a share `T**power / (skill)` of instances; training adds skill."""

    def __init__(self, config: KnownErrorConfig, seeds: Sequence[Seed]) -> None:
        self.config, self.members = config, len(seeds)
        self.skill = np.zeros(len(seeds))
        self.steps = np.zeros(len(seeds), dtype=np.int64)
        self.seeds = list(seeds)
        self.begun: list[int] = []

    def begin_stage(self, member: int) -> None:
        self.begun.append(member)

    def step(self, batches: Sequence[Batch | None]) -> list[Step | None]:
        out: list[Step | None] = []
        for m, batch in enumerate(batches):
            if batch is not None:
                self.skill[m] += len(batch) * (1 + 0.1 * m)
                self.steps[m] += 1
            out.append(None if batch is None else Step(1 / (1 + self.skill[m]), 100 * len(batch)))
        return out

    def error(self, member: int, size: int) -> float:
        return min(0.5, size**self.config.power / (1 + self.skill[member]))

    def predict(self, batches: Sequence[Batch | None]) -> list[Prediction | None]:
        out: list[Prediction | None] = []
        for m, batch in enumerate(batches):
            if batch is None:
                out.append(None)
                continue
            # which instances are missed depends on the instances, not on a stream of our own
            key = int(batch.inputs.sum()) * 1_000_003 + int(self.steps[m])
            g = torch_generator(self.seeds[m].child("misses", key))
            missed = torch.rand(len(batch), generator=g) < self.error(m, batch.size)
            out.append(Prediction(batch.targets ^ missed.long(), 10 * len(batch)))
        return out

    def state(self) -> dict[str, np.ndarray]:
        return {
            f"{m}/{name}": np.array([getattr(self, name)[m]])
            for m in range(self.members)
            for name in ("skill", "steps")
        }

    def load(self, state: dict[str, np.ndarray]) -> None:
        for key, value in state.items():
            m, name = key.split("/")
            getattr(self, name)[int(m)] = value[0]


@dataclass(frozen=True)
class KnownErrorConfig(LearnerConfig):
    power: float = 2.0

    def build(self, task: Task, seeds: Sequence[Seed], device: torch.device) -> KnownError:
        return KnownError(self, seeds)
