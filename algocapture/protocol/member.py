"""One member of a population on its way through the stages."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from algocapture.ledger import Account, Ledger
from algocapture.protocol.streams import Stream
from algocapture.rng import Seed
from algocapture.tasks.base import Task
from algocapture.types import Batch


@dataclass
class Member:
    """Where a member stands. All but the streams, which follow from it, goes into checkpoints."""

    number: int
    seed: Seed
    ledger: Ledger = field(default_factory=Ledger)
    stage: int = 0
    begun: bool = False  # the current stage has been entered
    censored: str | None = None  # what ended it: "samples", "flops", "looks" or DIVERGED
    steps: int = 0  # in the current stage
    next_look: int = 0  # in steps of the current stage
    low: int = 0  # samples of the stage at its last failing look
    spent: int = 0  # samples before the current stage: of all stages, or of stage 0 alone
    looks: list[dict[str, Any]] = field(default_factory=list)
    training: Stream = field(default_factory=Stream)
    looking: Stream = field(default_factory=Stream)

    @property
    def name(self) -> str:
        """The current stage as the ledger calls it."""
        return f"stage-{self.stage:03d}"

    def training_seed(self, step: int) -> Seed:
        """Of the batch of a step of the current stage."""
        return self.seed.child("train", self.stage, step)

    def training_generator(self, device: torch.device) -> torch.Generator:
        return self.training.take(self.training_seed, self.steps, device)

    def looking_generator(self, chunk: int, device: torch.device) -> torch.Generator:
        """Of a chunk of the look that comes; most looks need the first chunk alone."""
        seed, look = self.seed.child("look", self.stage), len(self.looks)
        if chunk == 0:
            return self.looking.take(lambda number: seed.child(number, 0), look, device)
        return self.looking.take(seed.child(look).child, chunk, device)

    def draw(
        self, task: Task, generator: torch.Generator, size: int, n: int, account: Account
    ) -> Batch:
        """The one way to a sample, and it charges the ledger."""
        sample = partial(_sample, task, size, generator)
        return self.ledger.draw(sample, n, stage=self.name, account=account)

    def next_stage(self, *, cumulative: bool, batch: int) -> None:
        if cumulative or self.stage == 0:
            self.spent += self.steps * batch
        self.stage += 1
        self.begun = False
        self.steps = self.next_look = self.low = 0
        self.looks = []

    def to_json(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "begun": self.begun,
            "censored": self.censored,
            "steps": self.steps,
            "next_look": self.next_look,
            "low": self.low,
            "spent": self.spent,
            "looks": list(self.looks),
            "ledger": self.ledger.to_json(),
        }

    def load(self, data: dict[str, Any]) -> None:
        self.ledger = Ledger.from_json(data["ledger"])
        self.stage, self.begun = int(data["stage"]), bool(data["begun"])
        self.censored = data["censored"]
        self.steps, self.next_look = int(data["steps"]), int(data["next_look"])
        self.low, self.spent = int(data["low"]), int(data["spent"])
        self.looks = list(data["looks"])


def _sample(task: Task, size: int, generator: torch.Generator, n: int) -> Batch:
    return task.sample(size, n, generator)
