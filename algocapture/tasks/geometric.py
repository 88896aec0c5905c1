"""Random geometric graphs: points of a cube, an edge between points closer than a radius."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from algocapture.rng import Seed
from algocapture.tasks.base import (
    Task,
    check_count,
    check_integer,
    check_rows,
    check_sampling,
    check_tensor,
    label_statistics,
)
from algocapture.tasks.compiled import in_threads
from algocapture.tasks.radius import SIDE, boundary_free_radius, corrected_radius, within
from algocapture.types import Batch, TaskSpec, torch_generator

DEGREE_LAWS = ("constant", "log")
COORDINATES = ("domain", "radius")
MOST_DIMENSIONS = 16
DEGREES = (1e-6, 1e6)  # so that radii and their squares are ordinary float32 numbers
CELL_MARGIN = 1.001  # cells are wider than the radius by more than float32 rounds
GIVE_UP = 200_000  # draws without one reachable instance
ADJACENCY = 1 << 26  # entries of the dense adjacency built at once


@dataclass(frozen=True)
class RandomGeometricGraph(Task):
    """T points uniform on [-1, 1]^d; the first is the source, the last the target.

    Two points are joined if their distance is at most radius(T), set by the mean degree:

    - `degree_law`: "constant", or "log" for a degree of `mean_degree` * log(T), where the graph
      becomes connected for coefficients above 1.
    - `boundary_corrected`: False takes the radius of a space without boundary and lets the true
      mean degree drift with T; True solves for it (and gives the complete graph where T - 1 is
      smaller). `true_mean_degree(T)` is exact in both cases.
    - `torus`: distances wrap round.
    - `coordinates`: "domain" hands out the points themselves, so that radius(T) is not in the
      input; "radius" divides them by it, so that points are joined at distance 1 for every T.
    - `connected`: instances whose target is out of reach are rejected and drawn again.

    Instances are float32, and their graph is computed from these very numbers: `edges`, `solve`
    and the sampler agree bit for bit on CPU and GPU (outside torch.compile, which may fuse).
    """

    dimension: int = 2
    mean_degree: float = 6.0
    degree_law: Literal["constant", "log"] = "constant"
    boundary_corrected: bool = False
    torus: bool = False
    coordinates: Literal["domain", "radius"] = "domain"
    connected: bool = False

    def __post_init__(self) -> None:
        check_integer("dimension", self.dimension, least=1, most=MOST_DIMENSIONS)
        degree, (least, most) = self.mean_degree, DEGREES
        number = isinstance(degree, int | float) and not isinstance(degree, bool)
        if not number or not least <= degree <= most:
            raise ValueError(
                f"mean_degree must be a number > 0, from {least:g} to {most:g}, got {degree!r}"
            )
        for name, allowed in (("degree_law", DEGREE_LAWS), ("coordinates", COORDINATES)):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {getattr(self, name)!r}")
        for name in ("boundary_corrected", "torus", "connected"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}")

    @property
    def spec(self) -> TaskSpec:
        return TaskSpec(
            "vectors", "value", features=self.dimension, readout="last", marks=(0, -1), smallest=2
        )

    @abstractmethod
    def answers(self, inputs: Tensor) -> Tensor:
        """The label of every instance, 0 if the target is out of reach."""

    # the ensemble

    def degree(self, size: int) -> float:
        """The mean degree asked for at this size."""
        return self.mean_degree * (math.log(size) if self.degree_law == "log" else 1.0)

    def radius(self, size: int) -> float:
        """Points of the domain at most this far apart are joined."""
        size = check_count("size", size, least=2)
        if self.boundary_corrected:
            return corrected_radius(self.degree(size), size, self.dimension, self.torus)
        return boundary_free_radius(self.degree(size), size, self.dimension)

    def true_mean_degree(self, size: int) -> float:
        """(T - 1) P(distance <= radius): what `degree` becomes near the boundary."""
        return (size - 1) * within(self.radius(size), self.dimension, self.torus)

    def scale(self, size: int) -> tuple[float, float]:
        """Radius and side of the domain in the units of the inputs, as float32 holds them."""
        radius = self.radius(size)
        unit = radius if self.coordinates == "radius" else 1.0
        return float(np.float32(radius / unit)), float(np.float32(SIDE / unit))

    # the graph of an instance

    def edges(self, inputs: Float[Tensor, "n size d"]) -> Bool[Tensor, "n size size"]:
        """Adjacency of the undirected graphs, without self loops."""
        inputs = self.check_inputs(inputs)
        size = inputs.shape[1]
        joined = torch.empty((len(inputs), size, size), dtype=torch.bool, device=inputs.device)
        step = max(1, ADJACENCY // size**2)
        for start in range(0, len(inputs), step):
            self._join(inputs[start : start + step], joined[start : start + step])
        return joined

    def _join(self, inputs: Tensor, joined: Tensor) -> None:
        radius, side = self.scale(inputs.shape[1])
        squares = self.squared_distances(inputs[:, :, None], inputs[:, None, :], side)
        torch.le(squares, self.limit(radius), out=joined)
        joined.diagonal(dim1=1, dim2=2).fill_(False)

    def squared_distances(self, a: Tensor, b: Tensor, side: float) -> Tensor:
        """Over the last axis, summed in order: the order and rounding of `graph_kernels`."""
        total = torch.zeros((), device=a.device)
        for k in range(self.dimension):
            t = (a[..., k] - b[..., k]).abs()
            if self.torus:
                t = torch.minimum(t, side - t)
            total = total + t * t
        return total

    @staticmethod
    def limit(radius: float) -> float:
        """The squared radius as float32, to compare squared distances with."""
        return float(np.float32(radius) * np.float32(radius))

    def on_cpu(self, kernel: Callable[..., None], inputs: Tensor) -> Tensor:
        """Labels by a compiled kernel, in torch.get_num_threads() threads."""
        size = inputs.shape[1]
        radius, side = self.scale(size)
        points = inputs.detach().cpu().contiguous().numpy()
        labels = np.empty(len(points), np.float32)
        limit, cells = self.limit(radius), self._cells(size, side / radius)

        def chunk(start: int, stop: int) -> None:
            kernel(
                points[start:stop],
                np.float32(limit),
                np.float32(side),
                self.torus,
                cells,
                labels[start:stop],
            )

        in_threads(chunk, len(points))
        return torch.from_numpy(labels).to(inputs.device)

    def _cells(self, size: int, sides: float) -> int:
        """Cells along an axis of the grid: as many as there are radii, about one per point."""
        most = size if self.dimension == 1 else math.ceil(math.sqrt(size))
        cells = max(1, min(int(sides / CELL_MARGIN), most))
        return 1 if self.torus and cells < 3 else cells

    def check_inputs(self, inputs: Tensor) -> Tensor:
        """Instances as float32; a batch that is none of ours is an error."""
        check_tensor("inputs", inputs)
        if inputs.ndim != 3 or inputs.shape[1] < 2 or inputs.shape[2] != self.dimension:
            raise ValueError(
                f"inputs have shape {tuple(inputs.shape)}, expected (n, size >= 2, "
                f"{self.dimension}): one point of {self.dimension} coordinates per node"
            )
        if not inputs.is_floating_point():
            raise ValueError(f"inputs are {inputs.dtype}, expected floating coordinates")
        check_rows(inputs.isfinite().flatten(1).all(1), "holds coordinates that are not finite")
        return inputs.float()

    # sampling

    def sample(self, size: int, n: int, generator: torch.Generator) -> Batch:
        size, n = check_sampling(self, size, n, generator)
        source = self.sampling_generator(size, generator)
        inputs, targets = self._draw(size, n, source)
        if self.connected:
            inputs, targets = self._reachable_only(inputs, targets, source)
        inputs, targets = inputs.to(generator.device), targets.to(generator.device)
        return Batch(inputs, targets, torch.ones_like(targets, dtype=torch.bool), size)

    def sampling_generator(self, size: int, generator: torch.Generator) -> torch.Generator:
        """Where instances are made: on the CPU, unless a task can label them on the GPU.

        A CUDA generator then gives the key of a CPU stream, and the batch is copied.
        """
        if generator.device.type == "cpu":
            return generator
        key = torch.randint(2**62, (), generator=generator, device=generator.device)
        return torch_generator(Seed(int(key)))

    def _draw(self, size: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        shape = (n, size, self.dimension)
        uniform = torch.rand(shape, generator=generator, device=generator.device)
        inputs = uniform.mul_(SIDE).sub_(SIDE / 2)
        if self.coordinates == "radius":
            inputs /= self.radius(size)
        return inputs, self.answers(inputs)

    def _reachable_only(
        self, inputs: Tensor, targets: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Exact conditioning: keep the reachable instances in order, draw until there are n."""
        n, size = inputs.shape[:2]
        kept_inputs, kept_targets = [inputs[targets > 0]], [targets[targets > 0]]
        kept, drawn = len(kept_inputs[0]), n
        while kept < n:
            if kept == 0 and drawn > GIVE_UP:
                raise ValueError(
                    f"connected=True: none of {drawn} instances of size {size} had its target in "
                    f"reach at mean_degree={self.mean_degree!r}; raise mean_degree"
                )
            inputs, targets = self._draw(size, max(n - kept, 64), generator)
            drawn += len(inputs)
            kept_inputs.append(inputs[targets > 0])
            kept_targets.append(targets[targets > 0])
            kept += len(kept_inputs[-1])
        return torch.cat(kept_inputs)[:n], torch.cat(kept_targets)[:n]

    # reports

    def distances(self, inputs: Tensor) -> Tensor:
        """Euclidean distance from source to target, in radii."""
        radius, side = self.scale(inputs.shape[1])
        return self.squared_distances(inputs[:, 0], inputs[:, -1], side).sqrt() / radius

    def describe(self, size: int, n: int, generator: torch.Generator) -> dict[str, Any]:
        """The ensemble at one size: radius, degrees, how often the target is in reach, labels.

        The degrees are those before `connected` rejects instances.
        """
        targets = self.sample(size, n, generator).targets
        return {
            "radius": self.radius(size),
            "mean_degree": self.degree(size),
            "true_mean_degree": self.true_mean_degree(size),
            "reachable": float((targets > 0).double().mean()),
            "labels": label_statistics(targets),
        }

    def symbols(self, instance: Tensor) -> list[tuple[str, str]]:
        """Coordinates; the ends and their neighbours have roles."""
        joined = self.edges(instance[None])[0]
        roles = ["" for _ in instance]
        for end, role in ((0, "source"), (-1, "target")):
            for neighbour in joined[end].nonzero().flatten().tolist():
                roles[neighbour] = roles[neighbour] or f"beside {role}"
        roles[0], roles[-1] = "source", "target"
        texts = ["(" + ", ".join(f"{x:.2f}" for x in point) + ")" for point in instance.tolist()]
        return list(zip(texts, roles, strict=True))
