"""Labels that occurred in the base stage, so that errors can be split by them.

A path length that never occurred at T0 is a label that the output head never produced:
missing it is not the same failure as missing the algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from algocapture.tasks.base import Task
from algocapture.types import Batch

TABLE = 4096  # labels are integers in [0, TABLE - 1); the rest share the last place
NOWHERE = TABLE  # what is not scored goes there: selecting by a mask would wait for the device
WAITING = 16  # batches whose labels are entered together, or at the next look


class SeenLabels:
    """A table on the device: no copy to the host while training."""

    def __init__(self, device: torch.device) -> None:
        self._table = torch.zeros(TABLE + 1, dtype=torch.bool, device=device)
        self._waiting: list[tuple[Tensor, Tensor]] = []  # targets and masks

    @property
    def table(self) -> Tensor:
        """Which labels have occurred."""
        if self._waiting:
            targets, mask = map(torch.cat, zip(*self._waiting, strict=True))
            self._table.index_fill_(0, torch.where(mask, _index(targets), NOWHERE), True)
            self._waiting.clear()
        return self._table[:TABLE]

    def add(self, batch: Batch) -> None:
        self._waiting.append((batch.targets.flatten(), batch.mask.flatten()))
        if len(self._waiting) == WAITING:
            _ = self.table

    def split(self, task: Task, predicted: Tensor, batch: Batch) -> Split:
        seen = self.table[_index(batch.targets)]
        kinds = seen + 2 * task.wrong(predicted, batch.targets)
        kinds = torch.where(task.scored(batch).bool(), kinds, 4)
        unseen, right, wrong_unseen, wrong, _ = kinds.flatten().bincount(minlength=5).tolist()
        return Split(right + wrong, wrong, unseen + wrong_unseen, wrong_unseen)

    def state(self) -> np.ndarray:
        return self.table.cpu().numpy().copy()

    def load(self, table: np.ndarray) -> None:
        self.table[:] = torch.from_numpy(np.array(table))


@dataclass(frozen=True)
class Split:
    """Scored targets and errors among them, by whether the label occurred in the base stage."""

    seen: int = 0
    wrong_seen: int = 0
    unseen: int = 0
    wrong_unseen: int = 0

    def __add__(self, other: Split) -> Split:
        return Split(
            self.seen + other.seen,
            self.wrong_seen + other.wrong_seen,
            self.unseen + other.unseen,
            self.wrong_unseen + other.wrong_unseen,
        )

    def to_json(self) -> dict[str, dict[str, float | int | None]]:
        return {
            "seen": {"n": self.seen, "error": _ratio(self.wrong_seen, self.seen)},
            "unseen": {"n": self.unseen, "error": _ratio(self.wrong_unseen, self.unseen)},
        }


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _index(labels: Tensor) -> Tensor:
    whole = labels.round() if labels.is_floating_point() else labels
    return whole.long().clamp(0, TABLE - 1)
