"""The interface of a task, with defaults for everything but `sample` and `solve`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from algocapture.types import Batch, TaskSpec

MOST = 2**31 - 1  # ids, sizes and numbers of instances


@dataclass(frozen=True)
class Exponents:
    """Complexity O(T^k) of the task: the paper's upper bound and the best one known to us."""

    paper: float
    known: float
    source: str


class Task(ABC):
    """A combinatorial task g: X -> Y with an input measure mu_{X,T} for every size T.

    A subclass is a frozen dataclass whose fields are the difficulty; it needs `sample` and
    `solve`. Constructors never draw.
    """

    margin: ClassVar[float] = 1.0  # Delta of the paper: distinct outputs lie this far apart
    exponents: ClassVar[Exponents | None] = None

    @abstractmethod
    def sample(self, size: int, n: int, generator: torch.Generator) -> Batch:
        """`n` instances of size `size`; tensors live on the generator's device.

        The batch is a function of (task, size, n, the generator's state). To train in parts, slice
        the batch: two calls for n/2 are not promised to equal one call for n.
        """

    @abstractmethod
    def solve(self, inputs: Tensor) -> Tensor:
        """The exact answer, recomputed from the instances alone; shape of the targets."""

    @property
    def spec(self) -> TaskSpec:
        raise ValueError(
            f"{type(self).__name__} does not say what it needs of a model: define the property "
            "`spec` to return a TaskSpec, or bring your own module"
        )

    def on_gpu(self, size: int) -> bool:
        """Whether a CUDA generator's instances are made there, without a copy to the host."""
        return True

    def error(self, predicted: Tensor, batch: Batch) -> Tensor:
        """Error of each instance in [0, 1], float64.

        Class ids err 0/1, values when |f - g| >= Delta/3 (the paper's definition of capture);
        an instance with several scored positions errs by their mean.
        """
        wrong = self.wrong(predicted, batch.targets)
        scored = self.scored(batch)
        wrong = (wrong & scored).double()
        if wrong.ndim == 1:
            return wrong
        return wrong.flatten(1).sum(1) / scored.flatten(1).sum(1).clamp(min=1)

    def instance_error(self, predicted: Tensor, batch: Batch) -> Tensor:
        """1 where any scored position of an instance errs, else 0: float64."""
        return (self.error(predicted, batch) > 0).double()

    def wrong(self, predicted: Tensor, targets: Tensor) -> Tensor:
        """Which targets are missed, bool."""
        check_tensor("predicted", predicted)
        if predicted.shape != targets.shape:
            raise ValueError(
                f"predicted has shape {tuple(predicted.shape)}, expected {tuple(targets.shape)}: "
                "give class ids or values, not logits"
            )
        if predicted.is_floating_point():
            return ~((predicted.double() - targets.double()).abs() < self.margin / 3)  # NaN errs
        return predicted != targets

    def scored(self, batch: Batch) -> Tensor:
        """The positions that count in `error`: those trained on, unless a task says otherwise."""
        return batch.mask

    def baselines(self, size: int, n: int, generator: torch.Generator) -> dict[str, float]:
        """Name of a cheap predictor -> its mean error on `n` fresh instances."""
        batch = self.sample(size, n, generator)
        return {"constant": self.constant_error(batch)}

    def describe(self, size: int, n: int, generator: torch.Generator) -> dict[str, Any]:
        """Statistics of `n` fresh instances for the task card, as JSON has them."""
        batch = self.sample(size, n, generator)
        return {"labels": label_statistics(batch.targets[self.scored(batch)])}

    def symbols(self, instance: Tensor) -> list[tuple[str, str]]:
        """One instance for the eye: (text, role) for each position; no role is an empty string."""
        return [(str(value), "") for value in instance.tolist()]

    def constant_error(self, batch: Batch) -> float:
        """Error of always giving the commonest answer, whatever the input."""
        answers = batch.targets[self.scored(batch)]
        commonest = answers.mode().values
        return float(self.error(commonest.expand_as(batch.targets), batch).mean())


def label_statistics(answers: Tensor) -> dict[str, Any]:
    """How many labels there are, their entropy, and the share of the commonest."""
    labels, counts = answers.unique(return_counts=True)
    shares = counts.double() / counts.sum()
    order = shares.argsort(descending=True, stable=True)[:12].tolist()
    return {
        "distinct": len(labels),
        "entropy_bits": float(-(shares * shares.log2()).sum()) + 0.0,
        "shares": [[labels[i].item(), float(shares[i])] for i in order],
    }


def check_sampling(task: Task, size: int, n: int, generator: torch.Generator) -> tuple[int, int]:
    """The arguments that every `sample` shares: size and n as plain integers, also if numpy's."""
    size = check_count(f"size of {type(task).__name__}", size, task.spec.smallest)
    n = check_count("n, the number of instances,", n, 1)
    if not isinstance(generator, torch.Generator):
        raise ValueError(f"generator must be a torch.Generator, got {generator!r}")
    if generator.device.type not in ("cpu", "cuda"):
        raise ValueError(
            f"generator lives on {generator.device.type!r}: instances are made on 'cpu' or 'cuda'"
        )
    return size, n


def check_count(name: str, value: object, least: int, most: int = MOST) -> int:
    """An argument that counts something, as a plain integer."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")
    if value > most:
        raise ValueError(f"{name} must be at most {most}, got {value!r}")
    return int(value)


def check_integer(field: str, value: object, least: int, most: int = MOST) -> None:
    """A field that counts something: plain, since fields are written as JSON."""
    check_count(field, value, least, most)
    if not isinstance(value, int):
        raise ValueError(f"{field} must be a plain int, got {value!r}")


def check_tokens(inputs: Tensor, vocab: int, shortest: int) -> Tensor:
    """Instances of token ids, int64; a batch that is none of the task's is an error."""
    check_tensor("inputs", inputs)
    fractional = inputs.is_floating_point() or inputs.is_complex()
    if inputs.ndim != 2 or inputs.shape[1] < shortest or fractional:
        raise ValueError(
            f"inputs must hold token ids of shape (n, length >= {shortest}), got {inputs.dtype} "
            f"of shape {tuple(inputs.shape)}"
        )
    check_rows(((inputs >= 0) & (inputs < vocab)).all(1), f"holds ids outside [0, {vocab})")
    return inputs.long()


def check_rows(good: Tensor, fault: str) -> None:
    """Refuse a batch for its first bad instance. On a GPU nobody looks: that would wait for it."""
    if good.device.type == "cpu" and not good.all():
        raise ValueError(f"inputs[{int((~good).nonzero()[0])}] {fault}")


def check_tensor(name: str, value: object) -> None:
    if not isinstance(value, Tensor):
        raise ValueError(f"{name} must be a torch.Tensor, got a {type(value).__name__}")


def narrow(ids: int) -> torch.dtype:
    """A dtype that holds 0..ids-1 and moves little memory while instances are made."""
    return torch.int16 if ids <= 2**15 else torch.int64
