"""Bayesian networks of finite width: mean kernels, posteriors, f_U, Langevin dynamics."""

from __future__ import annotations

import torch
from torch import Tensor

from algocapture.learners.finite import (
    Correction,
    Schedule,
    Size,
    correction,
    langevin,
    prior_kernels,
    size,
    weighted_posterior,
)
from algocapture.rng import Seed
from algocapture.stats.findings import Row
from algocapture.studies.convergence.families import DataSet, Family, data_set
from algocapture.studies.convergence.sizes import BLOCKS, Sizes
from algocapture.types import torch_generator

KERNEL_INPUTS = 4
SETS = 3  # data sets, so that no figure hangs on one


def kernels(family: Family, kind: str, sizes: Sizes, seed: Seed) -> list[Row]:
    """How far is the mean kernel over initialisations, and a single network's, from the limit?"""
    held = data_set(
        family, kind, KERNEL_INPUTS, sizes.limit_draws, seed.child("data"), sizes.device, tests=0
    )
    scale = float(held.kernel.square().mean().sqrt())
    rows = []
    for width in sizes.kernel_widths(family):
        population = family.build(width, "ntk")
        generator = torch_generator(seed.child(width), sizes.device)
        draws = sizes.networks(family, kind, width)
        drawn = prior_kernels(population, held.x, draws, generator, kind)
        off = (drawn - held.kernel) / scale
        mean = size(torch.stack([part.mean(0) for part in off.tensor_split(BLOCKS)]))
        single = off.square().mean((1, 2))
        value = float(single.mean().sqrt())
        error = float(single.std()) / len(single) ** 0.5 / (2 * value)
        rows.append(
            {"network": family.name, "kind": kind, "width": width, "draws": len(drawn)}
            | named("mean", mean)
            | named("single", Size(value, error))
        )
    return rows


def posterior(family: Family, sizes: Sizes, seed: Seed) -> list[Row]:
    """The exact posterior mean at each width beside f_K, f_K + f_U, and both corrections."""
    sets = _sets(family, sizes.samples, sizes, seed)
    first = [_first_order(family, held, sizes, seed.child("first", i)) for i, held in sets]
    rows = []
    for width in sizes.widths(family):
        exact, effective = [], []
        for i, held in sets:
            generator = torch_generator(seed.child("exact", width, i), sizes.device)
            population = family.build(width, "ntk")
            drawn = prior_kernels(population, held.x, sizes.draws(family, width), generator)
            found = weighted_posterior(held.problem, drawn, BLOCKS)
            exact.append(found.means - held.problem.mean())
            effective.append(found.effective)
        rows.append(
            {"network": family.name, "method": "weighted draws", "width": width}
            | {"P": sizes.samples, "effective": min(effective)}
            | _beside(width, exact, first)
        )
    return rows


def trained(family: Family, sizes: Sizes, seed: Seed) -> list[Row]:
    """The same deviations of networks trained by Langevin dynamics."""
    sets = _sets(family, sizes.samples, sizes, seed)
    first = [_first_order(family, held, sizes, seed.child("first", i)) for i, held in sets]
    rows = []
    for width in sizes.trained_widths(family):
        found, plain, facts = _run(family, width, sets, sizes, seed.child("run", width))
        rows.append(
            {"network": family.name, "method": "Langevin", "width": width, "P": sizes.samples}
            | facts
            | named("as they are", size(torch.cat(plain, 1)))
            | _beside(width, found, first)
        )
    return rows


def samples(family: Family, sizes: Sizes, seed: Seed) -> list[Row]:
    """Deviation and f_U over the number of training inputs, at one width."""
    rows, width = [], sizes.samples_width
    for count in sizes.counts:
        sets = _sets(family, count, sizes, seed.child(count))
        first = [
            _first_order(family, held, sizes, seed.child(count, "first", i)) for i, held in sets
        ]
        found, _, facts = _run(family, width, sets, sizes, seed.child(count, "run"))
        rows.append(
            {"network": family.name, "method": "Langevin", "width": width, "P": count}
            | facts
            | _beside(width, found, first)
        )
    return rows


def named(name: str, found: Size) -> Row:
    return {name: found.value, f"{name} error": found.stderr}


def _sets(family: Family, count: int, sizes: Sizes, seed: Seed) -> list[tuple[int, DataSet]]:
    return [
        (i, data_set(family, "nngp", count, sizes.limit_draws, seed.child("data", i), sizes.device))
        for i in range(SETS)
    ]


def _run(
    family: Family, width: int, sets: list[tuple[int, DataSet]], sizes: Sizes, seed: Seed
) -> tuple[list[Tensor], list[Tensor], Row]:
    found, plain, runs = [], [], []
    for i, held in sets:
        generator = torch_generator(seed.child(i), sizes.device)
        x, tests = held.x[: held.count], held.x[held.count :]
        schedule = Schedule(sizes.chains(family), sizes.burn, sizes.steps, every=10)
        run = langevin(family.build(width, "ntk"), held.problem, x, tests, schedule, generator)
        limit = held.problem.mean()
        found.append(_grouped(run.conditional) - limit)
        plain.append(_grouped(run.predictions) - limit)
        runs.append(run)
    accepted = min(run.accepted for run in runs)
    drift = max(run.drift for run in runs)
    return found, plain, {"accepted": accepted, "drift": drift}


def _grouped(values: Tensor) -> Tensor:
    return torch.stack([part.mean(0) for part in values.tensor_split(BLOCKS)])


def _first_order(family: Family, held: DataSet, sizes: Sizes, seed: Seed) -> tuple[int, Correction]:
    """Both terms, from networks of the width where they are read off."""
    width = sizes.reference(family)
    generator = torch_generator(seed, sizes.device)
    draws = 2 * sizes.draws(family, width)
    drawn = prior_kernels(family.build(width, "ntk"), held.x, draws, generator)
    return width, correction(held.problem, drawn, BLOCKS)


def _beside(width: int, found: list[Tensor], first: list[tuple[int, Correction]]) -> Row:
    """The deviation, the first-order terms at this width, and what they leave."""
    deviation = torch.cat(found, 1)
    cumulant = torch.cat([at / width * term.cumulant for at, term in first], 1)
    kernel = torch.cat([at / width * term.kernel for at, term in first], 1)
    evidence = max(abs(float(term.evidence.mean())) * at / width for at, term in first)
    return (
        named("deviation", size(deviation))
        | named("f_U", size(cumulant))
        | named("after f_U", size(deviation - cumulant))
        | named("after both", size(deviation - cumulant - kernel))
        | {"evidence": evidence}
    )
