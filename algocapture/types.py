"""The nouns that the parts exchange."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from algocapture.rng import Seed


def torch_generator(seed: Seed, device: torch.device | str = "cpu") -> torch.Generator:
    """A torch generator at the start of a named seed's stream."""
    generator = torch.Generator(device=device)
    generator.manual_seed(seed.integer())
    return generator


@dataclass(frozen=True)
class TaskSpec:
    """What a model must provide to be trained on a task."""

    inputs: Literal["tokens", "vectors"]
    output: Literal["class", "value"]
    vocab: int = 0  # tokens: ids lie in [0, vocab)
    features: int = 0  # vectors: coordinates per position
    classes: int = 0  # output "class": ids lie in [0, classes)
    readout: Literal["last", "mean", "every"] = "last"  # where the answer is read, by default
    marks: tuple[int, ...] = ()  # positions that a model may tell from the rest (source, target)
    smallest: int = 1  # the least size that has an instance


@dataclass(frozen=True, eq=False)
class Batch:
    """`n` instances of one size. `mask` marks the targets that are trained on."""

    inputs: Tensor  # (n, length) int64 tokens, or (n, size, features) floating
    targets: Tensor  # (n,) or (n, length): class ids (int64) or values (floating)
    mask: Tensor  # bool, shape of targets
    size: int  # T, the task's size: not always the length of the input

    def __post_init__(self) -> None:
        assert self.mask.shape == self.targets.shape, "mask and targets differ in shape"
        assert len(self.inputs) == len(self.targets), "inputs and targets differ in number"

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, rows: slice) -> Batch:
        """Micro-batches are slices: the instances do not depend on how a batch is split."""
        return replace(
            self, inputs=self.inputs[rows], targets=self.targets[rows], mask=self.mask[rows]
        )

    def to(self, device: torch.device | str) -> Batch:
        return replace(
            self,
            inputs=self.inputs.to(device),
            targets=self.targets.to(device),
            mask=self.mask.to(device),
        )
