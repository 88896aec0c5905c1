"""Monte-Carlo errors of kernels and predictors, and a predictor's coefficients: rows.

An error is the standard deviation over independent estimates of the same thing, so that no
reference value is needed and no bias enters it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from algocapture.kernels import InfiniteTransformer
from algocapture.kernels.encode import encode
from algocapture.rng import Seed
from algocapture.stats.findings import Row
from algocapture.tasks import StringMatch
from algocapture.types import torch_generator

KERNEL = InfiniteTransformer(1, "gelu", 1.7, 0.2, readout="last")
BOTH = ("nngp", "ntk")
FEATURES = 16  # of a random token
TESTS = 8  # test inputs of a predictor
SAMPLES = 512  # of the Gram behind the coefficients
MEMORY = 2**33  # bytes: of all inputs of both stages together


def tokens(count: int, length: int, seed: Seed, device: str) -> Tensor:
    """Random inputs whose tokens have covariances of order 1."""
    generator = torch_generator(seed.child("inputs", length), device)
    shape = (count, length, FEATURES)
    return torch.randn(shape, generator=generator, device=device, dtype=torch.float64)


def deviation(values: Tensor) -> tuple[float, float]:
    """Root mean square over entries of the deviation over independent estimates (the first axis),
    and its standard error by leaving out one estimate after the other."""
    n = len(values)
    spread = (values - values.mean(0)).square().flatten(1).mean(1)  # of each estimate
    root = float((spread.sum() / (n - 1)).sqrt())
    left = ((spread.sum() - spread) / (n - 2)).sqrt()
    return root, float(((left - left.mean()).square().sum() * (n - 1) / n).sqrt())


def spread(
    kernel: InfiniteTransformer,
    x: Tensor,
    y: Tensor,
    draws: int,
    repeats: int,
    generator: torch.Generator,
    sampler: str,
    read: Callable[[Tensor], Tensor] = lambda value: value,
) -> dict[str, tuple[float, float]]:
    """The deviation of `read` of a kernel between x and y, for both kinds."""
    made: dict[str, list[Tensor]] = {kind: [] for kind in BOTH}
    for _ in range(repeats):
        estimates = kernel.estimate(
            x, y, samples=draws, generator=generator, kinds=BOTH, sampler=sampler
        )
        for kind in BOTH:
            made[kind].append(read(estimates[kind].value))
    return {kind: deviation(torch.stack(of)) for kind, of in made.items()}


def by_draws(draws: tuple[int, ...], repeats: int, seed: Seed, device: str) -> list[Row]:
    """Entries of a kernel of one and of two blocks, T = 8. Two blocks take four times the draws:
    an estimate feeds the next block's nonlinear maps, and few draws are no small error."""
    x, y = tokens(6, 8, seed, device).split((2, 4))
    rows = []
    for depth in (1, 2):
        for n in draws:
            generator = torch_generator(seed.child(depth, n), device)
            kernel, spent = replace(KERNEL, depth=depth), n * 4 ** (depth - 1)
            found = spread(kernel, x, y, spent, repeats, generator, "pair")
            rows += [_row("entry", kind, value, depth=depth, draws=spent, T=8, P=1)
                     for kind, value in found.items()]  # fmt: skip
    return rows


def by_points(points: tuple[int, ...], repeats: int, seed: Seed, device: str) -> list[Row]:
    """sum_nu alpha_nu K(X, X_nu), alpha = 1 for all: the case in which errors add up most.

    Under a shared root only what the inputs have in common adds up like P: instances of a task
    share positions and letters, random inputs nothing.
    """
    rows = []
    for inputs in ("task", "random"):
        if inputs == "task":
            every = _matches(points[-1] + TESTS, 8, seed, device)[0]
        else:
            every = tokens(points[-1] + TESTS, 8, seed, device)
        x, y = every[:TESTS], every[TESTS:]
        for sampler in ("pair", "shared"):
            for p in points:
                generator = torch_generator(seed.child(inputs, sampler, p), device)
                found = spread(KERNEL, x, y[:p], 64, repeats, generator, sampler, _summed)
                name = f"{inputs} inputs, {sampler}"
                rows += [_row(name, kind, value, depth=1, draws=64, T=8, P=p)
                         for kind, value in found.items()]  # fmt: skip
    return rows


def _summed(value: Tensor) -> Tensor:
    return value.sum(1)


def by_length(lengths: tuple[int, ...], repeats: int, seed: Seed, device: str) -> list[Row]:
    """Many pairs, since the error is not the same for each, and they are others at every T."""
    rows = []
    for length in lengths:
        x, y = tokens(12, length, seed, device).split((4, 8))
        generator = torch_generator(seed.child(length), device)
        found = spread(KERNEL, x, y, 64, repeats, generator, "pair")
        rows += [_row("entry", kind, value, depth=1, draws=64, T=length, P=1)
                 for kind, value in found.items()]  # fmt: skip
    return rows


def by_depth(depths: tuple[int, ...], repeats: int, seed: Seed, device: str) -> list[Row]:
    x, y = tokens(6, 8, seed, device).split((2, 4))
    rows = []
    for depth in depths:
        generator = torch_generator(seed.child(depth), device)
        kernel = replace(KERNEL, depth=depth)
        found = spread(kernel, x, y, 128, repeats, generator, "pair")
        rows += [_row("entry", kind, value, depth=depth, draws=128, T=8, P=1)
                 for kind, value in found.items()]  # fmt: skip
    return rows


def _row(what: str, kind: str, value: tuple[float, float], **axes: int) -> Row:
    return {"what": what, "kind": kind, **axes, "error": value[0], "stderr": value[1]}


def coefficients(
    points: tuple[int, ...], lengths: tuple[int, ...], ridge: float, seed: Seed, device: str
) -> list[Row]:
    """alpha of both stages of the two-step predictor on string matching, targets -1 and 1.

    Stage one has P instances of length T, stage two as many of length 3 T / 2, fitted to the
    residuals of stage one.
    """
    rows = []
    cases = [(p, lengths[0]) for p in points] + [(points[len(points) // 2], t) for t in lengths[1:]]
    for p, t in cases:
        own = seed.child(p, t)
        x, y = zip(*(_matches(p, size, own, device) for size in (t, 3 * t // 2)), strict=True)
        grams = KERNEL.estimate(
            [*x[0].unbind(0), *x[1].unbind(0)], samples=SAMPLES, kinds=BOTH, sampler="row",
            generator=torch_generator(own.child("draws"), device), memory=MEMORY,
        )  # fmt: skip
        for kind in BOTH:
            gram = grams[kind].value.cpu().numpy()
            first = _solve(gram[:p, :p], y[0], ridge)
            second = _solve(gram[p:, p:], y[1] - gram[p:, :p] @ first, ridge)
            for stage, alpha in enumerate((first, second), 1):
                norm = float(np.linalg.norm(alpha))
                rows.append(
                    {"kind": kind, "stage": stage, "P": p, "T": t, "max": float(abs(alpha).max()),
                     "norm": norm, "norm / sqrt(P)": norm / p**0.5, "worst case": 1 / ridge}
                )  # fmt: skip
    return rows


def _matches(p: int, length: int, seed: Seed, device: str) -> tuple[Tensor, np.ndarray]:
    task = StringMatch(alphabet=8)
    batch = task.sample(length, p, torch_generator(seed.child("instances", length)))
    x = encode(batch.inputs, task.spec.vocab).to(device)
    return x, 2.0 * batch.targets.numpy().reshape(p) - 1


def _solve(gram: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
    solution: np.ndarray = np.linalg.solve(gram + ridge * np.eye(len(gram)), y)
    return solution
