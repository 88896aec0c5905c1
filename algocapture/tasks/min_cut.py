"""Minimum cut: how many edges separate two points of a random geometric graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from algocapture.config import register
from algocapture.tasks.base import Exponents
from algocapture.tasks.geometric import RandomGeometricGraph
from algocapture.tasks.graph_kernels import min_cuts


@register
@dataclass(frozen=True)
class MinCut(RandomGeometricGraph):
    """The least number of arcs whose removal cuts the last point off from the first.

    Capacities are 1. An edge between relays carries 1 either way; edges at the source leave it,
    edges at the target enter it. The value is the largest number of arc-disjoint paths; 0 if the
    target is out of reach.

        >>> task = MinCut(dimension=1, mean_degree=4.0)  # five points joined at distance 0.8
        >>> task.solve(torch.tensor([[[-0.5], [-0.2], [0.0], [0.2], [0.5]]]))
        tensor([3.])

    since both ends are joined to all three relays and not to each other.
    """

    exponents: ClassVar[Exponents] = Exponents(
        paper=2.0,
        known=1.0,
        source="augmenting paths: flow <= degree of the source, so O(degree E) = O(T) at constant "
        "degree and unit capacities (O(T log^2 T) for degree_law='log')",
    )

    def on_gpu(self, size: int) -> bool:
        return False

    def solve(self, inputs: Tensor) -> Tensor:
        """Augmenting paths on the CPU; inputs on a GPU are copied there and labels back."""
        return self.answers(self.check_inputs(inputs))

    def answers(self, inputs: Tensor) -> Tensor:
        return self.on_cpu(min_cuts, inputs)

    def baselines(self, size: int, n: int, generator: torch.Generator) -> dict[str, float]:
        """Constant; the smaller degree of source and target, an upper bound of every flow."""
        batch = self.sample(size, n, generator)
        ends = self.end_degrees(batch.inputs)
        smaller = ends.amin(1).to(batch.targets.dtype)
        return {
            "constant": self.constant_error(batch),
            "smaller degree": float(self.error(smaller, batch).mean()),
        }

    def end_degrees(self, inputs: Tensor) -> Tensor:
        """Degrees of source and target, (n, 2), without the adjacency of all points."""
        radius, side = self.scale(inputs.shape[1])
        ends = [
            self.squared_distances(inputs[:, end : end + 1], inputs, side) <= self.limit(radius)
            for end in (0, inputs.shape[1] - 1)
        ]
        return torch.stack([joined.sum(1) - 1 for joined in ends], 1)
