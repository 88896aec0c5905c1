"""What forward passes and kernel estimates cost: rows of counts and of times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from algocapture.complexity.counting import Cost, counted
from algocapture.complexity.flops import Workload
from algocapture.kernels import InfiniteTransformer
from algocapture.models import SimplifiedTransformer, Transformer
from algocapture.rng import Seed
from algocapture.stats.findings import Row
from algocapture.types import TaskSpec, torch_generator

TOKENS = TaskSpec(inputs="tokens", output="class", vocab=32, classes=32, readout="last")
Model = Transformer | SimplifiedTransformer
PRACTICAL = Transformer(depth=2, width=64, heads=4, readout="every")
PAPERS = SimplifiedTransformer(depth=2, width=64, heads=4, key_width=16, readout="tokens")
MODELS: dict[str, Model] = {"practical": PRACTICAL, "paper's": PAPERS}
KERNEL = InfiniteTransformer(1, "gelu", 1.7, 0.2, readout="tokens")
AXES = {"width": (64, 128, 256), "depth": (2, 4, 8), "heads": (4, 8, 16)}
REPEATS = 3  # of a timing; the quickest counts


def forward_counts(lengths: tuple[int, ...]) -> list[Row]:
    """Counted without data, at every length, and by width, depth and heads at the longest."""
    longest, rows = lengths[-1], []
    for name, model in MODELS.items():
        rows += [_forward(name, "T", length, model, length) for length in lengths]
        rows += [
            _forward(name, axis, value, _changed(model, axis, value), longest)
            for axis, values in AXES.items()
            for value in values
        ]
    return rows


def _changed(model: Any, field: str, value: int) -> Model:
    changed: Model = replace(model, **{field: value})
    return changed


def _forward(name: str, axis: str, value: int, model: Model, length: int) -> Row:
    module = model.build(TOKENS, torch_generator(Seed(0))).to("meta")
    x = torch.zeros(1, length, dtype=torch.int64, device="meta")
    cost = counted(lambda: module(x))
    lemma = model.depth * model.heads * model.width * length**2
    return {
        "model": name,
        "axis": axis,
        "value": value,
        "T": length,
        "products": cost.products,
        "formula": model.flops(TOKENS, length),
        "operations": cost.products + cost.entries,
        "over L H d T^2": cost.products / lemma,
        "bytes, plain": cost.peak,
        "bytes, fused": 4 * model.activations(TOKENS, length) if name == "practical" else None,
    }


def forward_times(lengths: tuple[int, ...], device: str) -> list[Row]:
    rows = []
    for name, model in MODELS.items():
        module = model.build(TOKENS, torch_generator(Seed(0))).to(device)
        for length in lengths:
            x = torch.zeros(1, length, dtype=torch.int64, device=device)

            def call(module: Any = module, x: torch.Tensor = x) -> None:
                with torch.no_grad():
                    module(x)

            row = {"model": name, "T": length, "seconds": quickest(call, device)}
            rows.append(row | {"products": model.flops(TOKENS, length)})
    return rows


def kernel_loads(
    lengths: tuple[int, ...], inputs: tuple[int, ...], draws: tuple[int, ...]
) -> Iterator[tuple[str, str, Workload]]:
    """(what, axis, load): T, P, draws and depth, one at a time, from a common corner."""
    length, least, few = lengths[len(lengths) // 2], inputs[0], draws[0]
    for kinds in (("nngp",), ("nngp", "ntk")):
        name = "NTK" if len(kinds) > 1 else "NNGP"

        def load(
            t: int = length,
            p: int = least,
            n: int = few,
            features: int | None = None,
            sampler: str = "pair",
            depth: int = 1,
            kinds: tuple[str, ...] = kinds,
        ) -> Workload:
            kernel = replace(KERNEL, depth=depth)
            rank = 2 * t if features is None else features
            return Workload(kernel, 1, t, rank, n, p, kinds, sampler)  # fmt: skip

        for t in lengths:
            yield f"{name}, pairs", "T", load(t)
            yield f"{name}, pairs, depth 2", "T", load(t, depth=2)
            yield f"{name}, pairs, rank 8", "T", load(t, features=8)
        for p in inputs:
            yield f"{name}, pairs", "P", load(p=p)
        for n in draws:
            yield f"{name}, pairs", "draws", load(n=n)
        for depth in (2, 3, 4):
            yield f"{name}, pairs", "depth", load(depth=depth)


def kernel_costs(
    lengths: tuple[int, ...],
    inputs: tuple[int, ...],
    draws: tuple[int, ...],
    device: str,
    seed: Seed,
) -> list[Row]:
    """Counted operations and time of a predictor's P entries, one test input against P."""
    rows = []
    for what, axis, load in kernel_loads(lengths, inputs, draws):
        call, made = _estimation(load, device, seed)
        cost = counted(call)
        load = replace(load, draws=made[0].draws, runs=made[0].replicates)
        rows.append(_kernel_row(what, axis, load, cost) | {"seconds": quickest(call, device)})
    return rows


def _estimation(load: Workload, device: str, seed: Seed) -> tuple[Callable[[], None], list[Any]]:
    generator = torch_generator(seed.child("draws"), device)
    shape = (load.inputs + (load.others or 0), load.length, load.features)
    # float64: roots keep their full rank, which single precision would clip
    x = torch.randn(shape, generator=generator, device=device, dtype=torch.float64)
    made: list[Any] = []

    def call() -> None:
        estimates = load.kernel.estimate(
            x[:1], x[1:], samples=load.draws, generator=generator, kinds=load.kinds,
            sampler=load.sampler,
        )  # fmt: skip
        made.append(estimates["nngp"])

    return call, made


def _kernel_row(what: str, axis: str, load: Workload, cost: Cost) -> Row:
    formula = load.cost(itemsize=8)
    return {
        "what": what,
        "axis": axis,
        "T": load.length,
        "P": load.others,
        "draws": load.draws,
        "depth": load.kernel.depth,
        "rank": min(load.features, 2 * load.length),
        "products": cost.products,
        "formula": formula.products,
        "entries": cost.entries,
        "cubes": cost.cubes,
        "operations": cost.products + cost.entries + cost.cubes,
        "bytes": cost.peak,
    }


def quickest(call: Callable[[], None], device: str) -> float:
    """Seconds, the least of a few; a first call warms up. On a CPU of processor time, which other
    work on the machine does not lengthen."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    taken = []
    for _ in range(REPEATS + 1):
        begun = clock()
        call()
        if device != "cpu":
            torch.cuda.synchronize(device)
        taken.append(clock() - begun)
    return min(taken[1:])
