"""The interface of a learner: what can be trained and adapted, whatever it is.

A learner is a population: `members` of them (one for a user's module and for kernels), which
share nothing but the call. Members have batches of their own; a member that is not active
neither changes nor costs anything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from algocapture.rng import Seed
from algocapture.tasks.base import Task
from algocapture.types import Batch


@dataclass(frozen=True)
class Step:
    """What one member's step gave and cost."""

    loss: float
    flops: int


@dataclass(frozen=True)
class Prediction:
    """Class ids or values, shape of the batch's targets, and the FLOPs they cost."""

    values: Tensor
    flops: int


class Learner(ABC):
    """A population of members being trained on one task."""

    members: int

    @abstractmethod
    def step(self, batches: Sequence[Batch | None]) -> list[Step | None]:
        """Give each active member its batch; None marks a member that waits."""

    @abstractmethod
    def predict(self, batches: Sequence[Batch | None]) -> list[Prediction | None]:
        """Each member's answers on its own batch, without changing the member."""

    def begin_stage(self, member: int) -> None:  # noqa: B027  # most learners have nothing to do
        """A new stage begins for this member: a kernel freezes its predictor here."""

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]:
        """Everything that a bit-for-bit continuation needs, as a flat dict of arrays.

        Keys start with the member's number, "3/model/head.weight": a member's part can be kept
        and given back alone.
        """

    @abstractmethod
    def load(self, state: dict[str, np.ndarray]) -> None:
        """Continue from a `state()`, or from some members' parts of one."""


class LearnerConfig(ABC):
    """A frozen dataclass that builds a learner: one member for each seed."""

    @abstractmethod
    def build(self, task: Task, seeds: Sequence[Seed], device: torch.device) -> Learner:
        """A fresh population at the start of its training."""
