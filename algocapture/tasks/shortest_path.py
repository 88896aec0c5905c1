"""Shortest path: the number of edges between two points of a random geometric graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from algocapture.config import register
from algocapture.tasks.base import Exponents
from algocapture.tasks.geometric import RandomGeometricGraph
from algocapture.tasks.graph_kernels import shortest_paths

LARGEST_ON_GPU = 256
PRODUCT_ENTRIES = 1 << 28  # of the dense matrices held at once
BIN = 0.25  # radii: resolution of the distance table


@register
@dataclass(frozen=True)
class ShortestPath(RandomGeometricGraph):
    """How many edges has a shortest path from the first point to the last? 0 if there is none.

    On a line with nominal degree 4, five points are joined at distance 4 * 2 / (5 * 2) = 0.8:

        >>> task = ShortestPath(dimension=1, mean_degree=4.0)
        >>> task.solve(torch.tensor([[[-0.9], [-0.3], [0.2], [-0.6], [0.9]]]))
        tensor([3.])

    since -0.9, -0.3, 0.2, 0.9 has three edges and 1.8 / 0.8 does not allow two.
    """

    exponents: ClassVar[Exponents] = Exponents(
        paper=1.0,
        known=1.0,
        source="breadth-first search, O(V + E); E = O(T), or O(T log T) for degree_law='log'",
    )

    def on_gpu(self, size: int) -> bool:
        return size <= LARGEST_ON_GPU and not self.connected

    def solve(self, inputs: Tensor) -> Tensor:
        """Breadth-first search on the CPU; on a GPU up to 256 nodes products of dense matrices."""
        return self.answers(self.check_inputs(inputs))

    def answers(self, inputs: Tensor) -> Tensor:
        if inputs.device.type == "cuda" and inputs.shape[1] <= LARGEST_ON_GPU:
            return self.dense_answers(inputs)
        return self.on_cpu(shortest_paths, inputs)

    def sampling_generator(self, size: int, generator: torch.Generator) -> torch.Generator:
        if size <= LARGEST_ON_GPU:
            return generator
        return super().sampling_generator(size, generator)

    def dense_answers(self, inputs: Tensor) -> Tensor:
        """Labels by batched products on the inputs' device, in log2(T) steps without a sync."""
        step = max(1, PRODUCT_ENTRIES // (inputs.shape[1] ** 2 * inputs.shape[1].bit_length()))
        parts = [self._by_doubling(self.edges(part)) for part in inputs.split(step)]
        return torch.cat(parts)

    @staticmethod
    def _by_doubling(joined: Tensor) -> Tensor:
        """Reach within 1, 2, 4, ... steps by squaring; then the longest walk that misses, bit by
        bit from the top: the answer is one more."""
        n, size = joined.shape[:2]
        # Half counts paths only up to rounding, but a sum of positive terms stays positive.
        kind = torch.half if joined.device.type == "cuda" else torch.float32
        reach = joined.to(kind)
        reach.diagonal(dim1=1, dim2=2).fill_(1)
        levels = [reach]
        for _ in range((size - 1).bit_length() - 1):
            levels.append((levels[-1] @ levels[-1]).clamp_(max=1))
        front = torch.zeros((n, 1, size), dtype=kind, device=joined.device)
        front[:, :, 0] = 1
        missed = torch.zeros(n, device=joined.device)
        for bit, level in reversed(list(enumerate(levels))):
            further = (front @ level).clamp_(max=1)
            short = further[:, :, -1:] == 0
            front = torch.where(short, further, front)
            missed += short.flatten() * 2.0**bit
        most = 2.0 ** len(levels) - 1  # >= T - 1 steps: who misses all of them is out of reach
        return torch.where(missed == most, 0.0, missed + 1)

    def baselines(self, size: int, n: int, generator: torch.Generator) -> dict[str, float]:
        """Constant; the distance in radii, rounded up (a lower bound of every path); the
        commonest label at that distance, learnt on a draw of its own."""
        batch = self.sample(size, n, generator)
        distance = self.distances(batch.inputs)
        draw = self.sample(size, n, generator)
        table = commonest(self.distances(draw.inputs).clamp(max=size), draw.targets)
        places = (distance.clamp(max=size) / BIN).long()  # beyond T radii nothing is in reach
        guesses = {
            "distance over radius": distance.ceil(),
            "commonest at this distance": table[places.clamp(max=len(table) - 1)],
        }
        return {"constant": self.constant_error(batch)} | {
            name: float(self.error(guess, batch).mean()) for name, guess in guesses.items()
        }


def commonest(distance: Tensor, targets: Tensor) -> Tensor:
    """The commonest target in each bin of the distance."""
    rows = (distance / BIN).long()
    columns = int(targets.max()) + 1
    cells = rows * columns + targets.long()
    counts = torch.bincount(cells, minlength=(int(rows.max()) + 1) * columns)
    return counts.view(-1, columns).argmax(1).to(targets.dtype)
