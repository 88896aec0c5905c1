"""One member of a population on its way through the stages."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from algocapture.ledger import Account, Ledger
from algocapture.rng import Seed
from algocapture.tasks.base import Task
from algocapture.types import Batch, torch_generator


@dataclass
class Member:
    """Where a member stands. Everything here goes into the checkpoint."""

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

    @property
    def name(self) -> str:
        """The current stage as the ledger calls it."""
        return f"stage-{self.stage:03d}"

    def draw(
        self, task: Task, seed: Seed, size: int, n: int, account: Account, device: torch.device
    ) -> Batch:
        """The one way to a sample, and it charges the ledger."""
        generator = torch_generator(seed, device)
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
