"""Networks of growing width trained by gradient flow, lazy ("ntk") and rich ("mean-field")."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from algocapture.learners.finite import Size, gradient_flow, size
from algocapture.learners.finite.prior import chunks
from algocapture.models import Population
from algocapture.models.population import Parameters
from algocapture.rng import Seed
from algocapture.stats.findings import Row
from algocapture.studies.convergence.bayes import named
from algocapture.studies.convergence.families import DataSet, Family, data_set
from algocapture.studies.convergence.sizes import BLOCKS, Sizes
from algocapture.types import torch_generator

DECAYS = 3.0  # training time, in units of one over the mean eigenvalue of the NTK


def lazy(family: Family, sizes: Sizes, seed: Seed) -> list[Row]:
    """Deviation from the NTK predictor at the same time: of the mean, and of one network."""
    held = _data(family, sizes.samples, sizes, seed)
    return [
        _against_limit(family, width, held, sizes, seed.child(width))
        for width in sizes.flow_widths(family)
    ]


def lazy_samples(family: Family, sizes: Sizes, seed: Seed) -> list[Row]:
    """The same over the number of training inputs, at one width."""
    width = 2 * sizes.samples_width
    return [
        _against_limit(
            family, width, _data(family, count, sizes, seed.child(count)), sizes,
            seed.child(count, width),
        )
        for count in sizes.counts
    ]  # fmt: skip


def rich(family: Family, sizes: Sizes, seed: Seed) -> list[Row]:
    """Both parameterisations at each width: the mean prediction against that at twice the width,
    the spread over networks, and how far training moves a network's own NTK."""
    held = _data(family, sizes.samples, sizes, seed)
    rows = []
    for kind in ("ntk", "mean-field"):
        former: Tensor | None = None
        for width in sizes.doubling(family):
            run = seed.child(kind, width)
            moved, change = _train(family, width, held, sizes, run, kind)
            mean = _blocks(moved)
            rows.append(
                {"network": family.name, "parameterisation": kind, "width": width}
                | {"networks": len(moved)}
                | named("step", Size(None, 0.0) if former is None else size(mean - former))
                | named("spread", _spread(moved - moved.mean(0)))
                | named("NTK change", change)
            )
            former = mean
    return rows


def _data(family: Family, count: int, sizes: Sizes, seed: Seed) -> DataSet:
    return data_set(family, "ntk", count, sizes.limit_draws, seed.child("data"), sizes.device)


def _time(held: DataSet) -> tuple[float, float]:
    """Training time and the largest rate of decay, of the limit's NTK."""
    values = torch.linalg.eigvalsh(held.kernel[: held.count, : held.count])
    return DECAYS / float(values.mean()), float(values[-1])


def limit_prediction(held: DataSet) -> Tensor:
    """K(x, X) K^-1 (1 - exp(-K t)) y."""
    p, (time, _) = held.count, _time(held)
    values, vectors = torch.linalg.eigh(held.kernel[:p, :p])
    shrink = -torch.expm1(-values * time) / values
    return held.kernel[p:, :p] @ (vectors @ (shrink * (vectors.T @ held.targets)))


def _against_limit(family: Family, width: int, held: DataSet, sizes: Sizes, seed: Seed) -> Row:
    moved, change = _train(family, width, held, sizes, seed, "ntk")
    off = moved - limit_prediction(held)
    return (
        {"network": family.name, "width": width, "P": held.count, "networks": len(off)}
        | named("mean", size(_blocks(off)))
        | named("single", _spread(off))
        | named("NTK change", change)
    )


def _train(
    family: Family, width: int, held: DataSet, sizes: Sizes, seed: Seed, kind: str
) -> tuple[Tensor, Size]:
    """How each network's predictions moved, and how much its NTK changed, relative
    to that of the population at the start."""
    population = family.build(width, kind)
    generator = torch_generator(seed, sizes.device)
    moved, change = [], []
    for members in chunks(population, sizes.flows(family, width)):
        start = population.draw(members, generator, held.x)
        end = _flow(population, start, held, width if kind == "mean-field" else 1)
        x, tests = held.x[: held.count], held.x[held.count :]
        with torch.no_grad():
            moved.append(population.outputs(end, tests) - population.outputs(start, tests))
            before, after = (population.tangents(p, x).flatten(1) for p in (start, end))
            change.append((after - before) / before.square().mean().sqrt())
    return torch.cat(moved), _spread(torch.cat(change))


def _flow(population: Population, start: Parameters, held: DataSet, rate: int) -> Parameters:
    """`rate`: mean-field outputs carry 1/sqrt(width), their gradient flow is that much slower."""
    time, fastest = _time(held)
    x = held.x[: held.count]
    # A narrow network's own NTK may be larger than the limit's.
    return gradient_flow(population, start, x, held.targets, time, fastest=2 * fastest, rate=rate)


def _blocks(values: Tensor) -> Tensor:
    return torch.stack([part.mean(0) for part in values.tensor_split(BLOCKS)])


def _spread(values: Tensor) -> Size:
    """Root mean square over networks and inputs, with the error that the networks give it."""
    squares = values.square().mean(1)
    root = math.sqrt(float(squares.mean()))
    return Size(root, float(squares.std()) / math.sqrt(len(squares)) / (2 * root))
