"""Formulas of cost against operations counted as they run."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from algocapture.complexity.counting import counted
from algocapture.complexity.flops import Workload, fully_connected_flops
from algocapture.kernels import InfiniteFullyConnected, InfiniteTransformer
from algocapture.models import SimplifiedTransformer, Transformer
from algocapture.types import TaskSpec
from tests.cases import MODELS, ModelCase

BOTH = ("nngp", "ntk")
BASE = InfiniteTransformer(1, "gelu", 1.7, 0.2)
TOKENS = TaskSpec(inputs="tokens", output="class", vocab=11, classes=7, readout="last")


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_counter_counts() -> None:
    """By hand, on tensors with and without data."""
    for device in ("cpu", "meta"):
        a, b = torch.ones(4, 6, 5, device=device), torch.ones(4, 5, 7, device=device)

        def call(a: torch.Tensor = a, b: torch.Tensor = b) -> None:
            x = a @ b  # 2 * 4 * 6 * 5 * 7
            y = x.mT.exp()  # a view costs nothing; 168 entries
            del x
            y.add_(1)  # 168 entries in place: no memory

        cost = counted(call)
        assert (cost.products, cost.entries, cost.cubes) == (1680, 336, 0)
        assert cost.peak == 2 * 168 * 4
    eye = torch.eye(3).expand(2, 3, 3)
    assert counted(lambda: torch.linalg.eigh(eye)).cubes == 2 * 27


CASES = [
    (replace(BASE, readout=readout, depth=depth), sampler, others)
    for depth, readout in ((1, "tokens"), (1, "last"), (2, "mean"), (2, "last"))
    for sampler in ("shared", "row", "pair", "conditional", "keys")
    for others in (None, 2)
    if sampler != "row" or readout == "last"
]


@pytest.mark.parametrize(("kernel", "sampler", "others"), CASES, ids=str)
def test_kernel_formulas_are_what_is_run(
    kernel: InfiniteTransformer, sampler: str, others: int | None
) -> None:
    """Low and full rank, NNGP with and without NTK."""
    inputs, length, draws = 3, 5, 16
    for features, kinds in ((3, BOTH), (40, BOTH), (3, ("nngp",)), (40, ("nngp",))):
        x = torch.randn(inputs, length, features, generator=rng(), dtype=torch.float64)
        y = None if others is None else torch.randn(others, *x.shape[1:], generator=rng(2)).to(x)
        made = []

        def call(x=x, y=y, kinds=kinds, made=made) -> None:  # type: ignore[no-untyped-def]
            made.append(
                kernel.estimate(x, y, samples=draws, generator=rng(1), kinds=kinds, sampler=sampler)
            )

        real = counted(call)
        done = made[0]["nngp"]
        load = Workload(
            kernel, inputs, length, features, done.draws, others, kinds, sampler,
            runs=done.replicates,
        )  # fmt: skip
        cost = load.cost(itemsize=8)
        assert cost.cubes == real.cubes
        tokens = length if kernel.readout == "tokens" else 1
        projected = 2 * (inputs * tokens) ** 3 if load.by_pairs and others is None else 0
        assert real.products - cost.products in {0, projected, 2 * projected}


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("sampler", ["shared", "pair"])
@pytest.mark.parametrize("kinds", [BOTH, ("nngp",)], ids=len)
def test_kernel_memory_is_bounded_by_its_formula(
    depth: int, sampler: str, kinds: tuple[str, ...]
) -> None:
    """Twice the formula holds whatever is alive; for a Gram of all tokens half of it is used."""
    kernel, memory = replace(BASE, depth=depth), 2**22
    for inputs, length, features, draws in ((4, 32, 64, 16), (2, 64, 128, 8)):
        x = torch.randn(inputs, length, features, generator=rng())
        made = []

        def call(x=x, draws=draws, made=made) -> None:  # type: ignore[no-untyped-def]
            made.append(
                kernel.estimate(x, samples=draws, generator=rng(1), kinds=kinds,
                                sampler=sampler, memory=memory)
            )  # fmt: skip

        peak = counted(call).peak
        done = made[0]["nngp"]
        load = Workload(
            kernel, inputs, length, features, done.draws, None, kinds, sampler,
            runs=done.replicates,
        )  # fmt: skip
        formula = load.cost(4, memory).memory
        assert 0.5 * formula < peak < 2 * formula


def test_fully_connected_formula() -> None:
    kernel = InfiniteFullyConnected(depth=3)
    x, y = torch.randn(5, 4, 6, generator=rng()), torch.randn(7, 4, 6, generator=rng())
    for kind in BOTH:
        cost = counted(lambda kind=kind: kernel(x, y, kind))
        assert cost.products == fully_connected_flops(kernel, 5, 7, 24)
        assert cost.cubes == 0


@pytest.mark.parametrize(
    "model",
    [
        Transformer(depth=2, width=32, heads=4),
        Transformer(depth=3, width=16, heads=2, mlp=16, position="none", causal=False),
        Transformer(depth=2, width=16, heads=1, readout="every", mlp=40),
        SimplifiedTransformer(depth=2, width=16, heads=4, key_width=8),
        SimplifiedTransformer(depth=2, width=16, heads=3, key_width=4, causal=True),
    ],
    ids=repr,
)
def test_activations_are_what_is_alive(model: Transformer | SimplifiedTransformer) -> None:
    """Within 5% at lengths well above the width."""
    module = model.build(TOKENS, rng())
    for length in (256, 512):
        x = torch.zeros(1, length, dtype=torch.int64)
        peak = counted(lambda x=x: module(x), fused=True).peak
        assert peak / 4 == pytest.approx(model.activations(TOKENS, length), rel=0.05)


@pytest.mark.parametrize("case", [c for c in MODELS if c.spec.inputs == "tokens"], ids=str)
def test_flops_of_models_without_data(case: ModelCase) -> None:
    """At a length that no test could run: the counter needs no data."""
    module = case.model.build(case.spec, rng()).to("meta")
    length = 20_000
    cost = counted(lambda: module(torch.zeros(1, length, dtype=torch.int64, device="meta")))
    assert cost.products == case.model.flops(case.spec, length)


def test_arguments() -> None:
    with pytest.raises(ValueError, match="draws = 0: expected an integer >= 1"):
        Workload(BASE, 1, 4, 4, 0)
    with pytest.raises(ValueError, match="sampler = 'auto': expected one of 'shared'"):
        Workload(BASE, 1, 4, 4, 1, sampler="auto")
