"""The nouns that the parts exchange."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from torch import Tensor

from algocapture.rng import Seed

Inputs = Literal["tokens", "vectors"]
Output = Literal["class", "value"]
Readout = Literal["last", "mean", "every"]

# Where a CPU generator's state holds the 624 words of the twister, 8 bytes each.
WORDS = 624
TWISTER = slice(24, 24 + WORDS * 8)
_BLANK = torch.Generator().manual_seed(0).get_state().numpy()  # the state but for its words


def torch_generator(seed: Seed, device: torch.device | str = "cpu") -> torch.Generator:
    """A torch generator at the start of a named seed's stream.

    On the CPU torch seeds its Mersenne twister with the lower 32 bits only, so that among 80,000
    generators two would probably be the same: there the whole state is written.
    """
    generator = torch.Generator(device=device)
    if generator.device.type != "cpu":
        return generator.manual_seed(seed.integer())
    state = _BLANK.copy()
    state[TWISTER].view("<u8")[:] = seed.words(WORDS)
    return generator.set_state(torch.from_numpy(state))


@dataclass(frozen=True)
class TaskSpec:
    """What a model must provide to be trained on a task."""

    inputs: Inputs
    output: Output
    vocab: int = 0  # tokens: ids lie in [0, vocab)
    features: int = 0  # vectors: coordinates per position
    classes: int = 0  # output "class": ids lie in [0, classes)
    readout: Readout = "last"  # where the answer is read, by default
    marks: tuple[int, ...] = ()  # positions that a model may tell from the rest (source, target)
    smallest: int = 1  # the least size that has an instance

    def __post_init__(self) -> None:
        needed = {
            "vocab": self.inputs == "tokens",
            "features": self.inputs == "vectors",
            "classes": self.output == "class",
            "smallest": True,
        }
        for field, allowed in {"inputs": Inputs, "output": Output, "readout": Readout}.items():
            if getattr(self, field) not in get_args(allowed):
                raise ValueError(
                    f"{field} must be one of {get_args(allowed)}, got {getattr(self, field)!r}"
                )
        for field, wanted in needed.items():
            if wanted and getattr(self, field) < 1:
                raise ValueError(
                    f"{field} must be at least 1 for inputs={self.inputs!r} and "
                    f"output={self.output!r}, got {getattr(self, field)!r}"
                )


@dataclass(frozen=True, eq=False)
class Batch:
    """`n` instances of one size. `mask` marks the targets that are trained on."""

    inputs: Tensor  # (n, length) int64 tokens, or (n, size, features) floating
    targets: Tensor  # (n,) or (n, length): class ids (int64) or values (floating)
    mask: Tensor  # bool, shape of targets
    size: int  # T, the task's size: not always the length of the input

    def __post_init__(self) -> None:
        if self.mask.shape != self.targets.shape or self.mask.dtype != torch.bool:
            raise ValueError(
                f"mask must be bool of the targets' shape {tuple(self.targets.shape)}, got "
                f"{self.mask.dtype} of shape {tuple(self.mask.shape)}"
            )
        if len(self.inputs) != len(self.targets):
            raise ValueError(
                f"targets answer {len(self.targets)} instances, but inputs hold {len(self.inputs)}"
            )

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, rows: slice) -> Batch:
        """Micro-batches are slices: the instances do not depend on how a batch is split."""
        return replace(
            self, inputs=self.inputs[rows], targets=self.targets[rows], mask=self.mask[rows]
        )

    def to(self, device: torch.device | str) -> Batch:
        if all(
            part.device == torch.device(device) for part in (self.inputs, self.targets, self.mask)
        ):
            return self
        return replace(
            self,
            inputs=self.inputs.to(device),
            targets=self.targets.to(device),
            mask=self.mask.to(device),
        )
