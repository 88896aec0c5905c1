"""Conditional kernels of freshly initialised networks, in chunks that fit the memory."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from algocapture.models.population import Population

ENTRIES = 2**22  # parameters held at once


def chunks(population: Population, draws: int) -> list[int]:
    """How many networks at a time."""
    most = max(1, ENTRIES // population.size)
    return [min(most, draws - start) for start in range(0, draws, most)]


def prior_kernels(
    population: Population,
    x: Float[Tensor, "n ..."],
    draws: int,
    generator: torch.Generator,
    kind: str = "nngp",
) -> Float[Tensor, "draws n n"]:
    """k = R R^T of each draw, or its NTK."""
    call = population.tangents if kind == "ntk" else population.kernels
    parts = []
    with torch.no_grad():
        for members in chunks(population, draws):
            parts.append(call(population.draw(members, generator, x), x))
    return torch.cat(parts)
