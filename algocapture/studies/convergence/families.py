"""Networks of growing width with their infinite-width limit, and what they are taught.

Fully-connected networks of two linear maps (a bounded activation and ReLU) and of three, and the
paper's transformer of one block with as many heads, and as wide keys, as it is wide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from algocapture.kernels import InfiniteFullyConnected, InfiniteTransformer
from algocapture.learners.finite import Problem
from algocapture.models import FullyConnected, Population, SimplifiedTransformer
from algocapture.rng import Seed
from algocapture.types import TaskSpec, torch_generator

TOKENS, FEATURES = 3, 3  # of an input: the fully-connected networks see one token
WEIGHT_VAR, BIAS_VAR = 2.0, 0.1
RIDGE = 0.2
TESTS = 8  # test inputs of a data set


@dataclass(frozen=True)
class Family:
    """One architecture at every width."""

    name: str
    what: str  # for the reader
    tokens: int
    activation: str
    exact: bool  # is the limit's kernel known in closed form?
    build: Callable[[int, str], Population]  # width, parameterisation
    limit: Callable[[Tensor, str, int, torch.Generator], Tensor]  # x, kind, draws

    def inputs(self, n: int, generator: torch.Generator) -> Tensor:
        """Tokens on the sphere of radius sqrt(FEATURES)."""
        device = generator.device
        shape = (n, self.tokens, FEATURES)
        x = torch.randn(shape, generator=generator, dtype=torch.float64, device=device)
        return x * (FEATURES**0.5 / x.norm(dim=-1, keepdim=True))

    def targets(self, x: Tensor) -> Tensor:
        """+-1: the sign of a product of two coordinates of the last token."""
        return (x[:, -1, 0] * x[:, -1, 1]).sign()


@dataclass(frozen=True)
class DataSet:
    """P training inputs with targets and S test inputs, and the limit's kernel on both."""

    x: Tensor  # training inputs first
    targets: Tensor
    kernel: Tensor

    @property
    def count(self) -> int:
        return len(self.targets)

    @property
    def problem(self) -> Problem:
        return Problem(self.kernel, self.targets, RIDGE)


def data_set(
    family: Family, kind: str, count: int, draws: int, seed: Seed, device: str, tests: int = TESTS
) -> DataSet:
    """`draws`: of the limit's kernel, where it needs any."""
    x = family.inputs(count + tests, torch_generator(seed.child("inputs"), device))
    kernel = family.limit(x, kind, draws, torch_generator(seed.child("limit"), device))
    return DataSet(x, family.targets(x[:count]), kernel)


def _fully_connected(depth: int, activation: str) -> Family:
    fields = (activation, WEIGHT_VAR, BIAS_VAR)
    infinite = InfiniteFullyConnected(depth, *fields)

    def build(width: int, parameterisation: str) -> Population:
        config = FullyConnected(depth, width, *fields, parameterisation)  # type: ignore[arg-type]
        return Population(config.build(FEATURES, torch.Generator()))

    def limit(x: Tensor, kind: str, draws: int, generator: torch.Generator) -> Tensor:
        return infinite(x, kind=kind)

    what = f"fully connected, {depth} linear maps, {activation}"
    return Family(f"fcn{depth}-{activation}", what, 1, activation, True, build, limit)


def _transformer(activation: str) -> Family:
    fields = {"activation": activation, "weight_var": WEIGHT_VAR, "bias_var": BIAS_VAR}
    infinite = InfiniteTransformer(1, readout="last", **fields)  # type: ignore[arg-type]
    spec = TaskSpec(inputs="vectors", output="value", features=FEATURES)

    def build(width: int, parameterisation: str) -> Population:
        config = SimplifiedTransformer(
            1, width, heads=width, key_width=width, epsilon=0.0,
            parameterisation=parameterisation, readout="last", **fields,  # type: ignore[arg-type]
        )  # fmt: skip
        return Population(config.build(spec, torch.Generator()))

    def limit(x: Tensor, kind: str, draws: int, generator: torch.Generator) -> Tensor:
        estimate = infinite.estimate(x, samples=draws, generator=generator, kinds=(kind,))
        return estimate[kind].value

    what = f"transformer, 1 block, {activation}, heads = width, {TOKENS} tokens"
    return Family("transformer", what, TOKENS, activation, False, build, limit)


FAMILIES = {
    family.name: family
    for family in (
        _fully_connected(2, "erf"),
        _fully_connected(2, "relu"),
        _fully_connected(3, "gelu"),
        _transformer("relu"),
    )
}
