"""PAC-style capture (App. "PAC-style capture"): many adaptations with a fixed budget.

From each base model, at each size T, R adaptations of at most C0 log(T/T0) samples, each with
data of its own. beta is how often such an adaptation fails, alpha how often a base model does;
`stats/pac.py` turns the records into statements.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from algocapture.config import register
from algocapture.protocol.plan import Protocol


@register
@dataclass(frozen=True)
class PacReplication(Protocol):
    """Stages after the base one: T_1 R times, T_2 R times, ..., all from the base model.

    Each has one look, after its budget, at level `test.beta / test.looks`.
    """

    cost: float = 10_000.0  # C0, in samples for each unit of log(T/T0)
    replicates: int = 20  # R

    cumulative: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.cost >= 0:
            raise ValueError(f"cost must be >= 0 samples, got {self.cost!r}")
        if self.replicates < 1:
            raise ValueError(f"replicates must be >= 1, got {self.replicates!r}")

    def size(self, stage: int) -> int:
        return super().size(0 if stage == 0 else 1 + (stage - 1) // self.replicates)

    def start(self, stage: int) -> int:
        return self.t0

    def first_look(self, stage: int) -> int:
        if stage == 0:
            return 0
        # "at most C0 log(T/T0)": whole batches that fit
        return math.floor(self.cost * math.log(self.size(stage) / self.t0) / self.batch)

    def look_after(self, stage: int, steps: int) -> int | None:
        return super().look_after(stage, steps) if stage == 0 else None
