"""Tiles of one Gram: every tile draws the same draws again, wherever and in whatever order it runs.

At depth 1 the tokens are a root of their covariance, so that draw i is one d x d normal matrix for
all inputs, here drawn from a seed of its number. Tiles with equal numbers of draws are then parts
of one Gram, positive semi-definite as a whole. Beyond, a block's root needs all inputs at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from algocapture.kernels.chain import last_rows
from algocapture.kernels.estimate import Estimate, Estimates, Values, Work
from algocapture.kernels.inputs import Stack, as_list
from algocapture.kernels.monte_carlo import Request, Run
from algocapture.kernels.transformer import InfiniteTransformer
from algocapture.rng import Seed
from algocapture.types import torch_generator

CHUNK = 16  # draws of one seed: part of the numbers
PARTS = 16  # independent parts behind the standard error

Parts = Mapping[str, Float[Tensor, "parts ..."]]  # means of the moments of each part


@dataclass
class Numbered:
    """A sampler whose draws have numbers: `draw` takes up where the last one ended."""

    root: Float[Tensor, "G P T d"]
    queries: Float[Tensor, "G P Q d"]
    seed: Seed
    at: int = 0
    _held: tuple[int, Tensor] | None = field(default=None, repr=False)

    def draw(self, n: int, generator: torch.Generator | None) -> Float[Tensor, "n G P Q T"]:
        numbers = range(self.at, self.at + n)
        self.at += n
        u = torch.stack([self._chunk(number // CHUNK)[number % CHUNK] for number in numbers])
        left = (self.queries.flatten(1, 2) @ u[:, None]).unflatten(2, self.queries.shape[1:3])
        return left @ self.root.mT

    def _chunk(self, chunk: int) -> Float[Tensor, "{CHUNK} d d"]:
        if self._held is None or self._held[0] != chunk:
            generator = torch_generator(self.seed.child(chunk), self.root.device)
            shape = (CHUNK, self.root.shape[-1], self.root.shape[-1])
            drawn = torch.randn(shape, generator=generator, dtype=self.root.dtype)
            self._held = (chunk, drawn)
        return self._held[1]


@dataclass(frozen=True)
class Tile:
    """The entries between two sets of inputs, or within one, of a Gram at depth 1."""

    run: Run
    kind: str

    @classmethod
    def of(cls, kernel: InfiniteTransformer, left: Tensor, right: Tensor | None, kind: str) -> Tile:
        if kernel.depth != 1:
            raise ValueError(f"depth = {kernel.depth}: tiles of one Gram are for depth 1")
        unused = torch.Generator()
        request = Request(left, right, PARTS, unused, (kind,), "shared", 64, None, 2**30)
        first = as_list("left", left)
        second = [] if right is None else as_list("right", right)
        stack = Stack.of(first + second, left.dtype)
        run = Run(kernel, request, stack, len(first), right is None, "shared")
        if kind == "ntk":
            run.check_range()
        return cls(run, kind)

    def draw(self, seed: Seed, start: int, number: int) -> Parts:
        """The moments over draws `start` to `start + number` of every part."""
        left, right = slice(None), slice(None)
        if not self.run.symmetric:
            left, right = slice(0, self.run.first), slice(self.run.first, None)
        chain = self.run.chain(left, right)
        entry, root = chain.begin(self.run.stack), self.run.stack.root
        queries = last_rows(root, self.run.stack) if entry.one_row else root
        found = []
        for part in range(PARTS):
            sampler = Numbered(root, queries, seed.child(part), start)
            moments = chain.run(replace(entry, sampler=sampler), number, torch.Generator())
            found.append({k: v[0] for k, v in moments.values().items()})
        return {k: torch.stack([of[k] for of in found]) for k in found[0]}

    def estimate(self, parts: Parts, draws: int) -> Estimate:
        """Value and standard error; `draws` of all parts together."""
        separate = [{k: v[i] for k, v in parts.items()} for i in range(PARTS)]
        run = self.run
        work = Work(run.draw, run.finish, run.settle, draws // PARTS, "", "shared", ())
        return Estimates(work, separate)[self.kind]


def joined(held: Parts, draws: int, more: Parts, further: int) -> Values:
    """The means over both."""
    total = draws + further
    return {k: held[k] * (draws / total) + more[k] * (further / total) for k in held}


def parts_bytes(inputs: int, tokens: int, readout: str) -> int:
    """What the parts of a tile of so many inputs a side take in memory, roughly."""
    rows = 1 if readout == "last" else tokens
    return 2 * PARTS * 8 * (inputs * rows) ** 2
