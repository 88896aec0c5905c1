"""Gram matrices that grow: new inputs are appended, old entries keep every bit.

A Monte-Carlo Gram is a stack of independent replicates. In each, one normal matrix U per draw and
block is shared by all inputs; the root of a block's covariance is block-triangular, so an appended
input adds rows to the root and a strip to U and leaves the rows of older inputs alone. U is never
stored: it is drawn again from its own named seed. Memory is replicates x depth x (P T)^2. With a
finite key dimension U has that rank: a bias of order 1/key_dim, r / key_dim times less work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from algocapture.allocator import keep_freed_memory
from algocapture.kernels.checks import check_choice, check_count
from algocapture.kernels.fully_connected import InfiniteFullyConnected
from algocapture.kernels.growth import Block, Growth, Layout, bordered
from algocapture.kernels.inputs import Stack
from algocapture.kernels.transformer import InfiniteTransformer
from algocapture.rng import Seed

REPLICATES = 8
Kernel = InfiniteFullyConnected | InfiniteTransformer


class Gram(Protocol):
    """What a predictor asks: independent replicates (one, if exact) of its Gram."""

    biases: tuple[str, ...]

    def append(self, items: Sequence[Tensor]) -> None:
        """Add inputs (T_i, d)."""
        ...

    def matrix(self) -> Float[Tensor, "R P P"]:
        """The Gram of the inputs appended so far."""
        ...

    def cross(self, items: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """(R, S, P) of new inputs with those appended, (R, S) of new inputs with themselves."""
        ...

    def flops(self, items: Sequence[Tensor], appended: bool = False) -> int:
        """Of a cross Gram with items, or of having appended them: products, roots left out."""
        ...


class ExactGram:
    """The Gram of a kernel in closed form: one replicate."""

    biases: tuple[str, ...] = ()

    def __init__(self, kernel: InfiniteFullyConnected, kind: str) -> None:
        self._kernel, self._kind = kernel, kind
        self._inputs: Tensor | None = None
        self._gram: Tensor | None = None

    def append(self, items: Sequence[Tensor]) -> None:
        new = _of_one_length(items)
        if self._inputs is None or self._gram is None:
            self._inputs, self._gram = new, self._kernel(new, kind=self._kind)
            return
        everything = torch.cat([self._inputs, new])
        self._gram = bordered(self._gram, self._kernel(new, everything, self._kind))
        self._inputs = everything

    def matrix(self) -> Float[Tensor, "1 P P"]:
        assert self._gram is not None, "nothing was appended"
        return self._gram[None]

    def cross(self, items: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        assert self._inputs is not None, "nothing was appended"
        new = _of_one_length(items)
        own = torch.cat([self._kernel(x[None], kind=self._kind).flatten() for x in new])
        return self._kernel(new, self._inputs, self._kind)[None], own[None]

    def flops(self, items: Sequence[Tensor], appended: bool = False) -> int:
        inputs = 0 if self._inputs is None else len(self._inputs)
        return 2 * len(items) * (inputs if appended else inputs + len(items)) * items[0].numel()


def _of_one_length(items: Sequence[Tensor]) -> Tensor:
    if len({item.shape for item in items}) > 1:
        raise ValueError("inputs of several lengths: a fully-connected network needs one length")
    return torch.stack(list(items))


@dataclass(frozen=True)
class Replicate:
    """One independent run of the chain over all inputs so far."""

    seed: Seed
    blocks: tuple[Block, ...]
    gram: Float[Tensor, "P P"]


class GrowingGram:
    """The Monte-Carlo Gram of an `InfiniteTransformer` with readout "last" or "mean"."""

    def __init__(
        self,
        kernel: InfiniteTransformer,
        kind: str,
        *,
        samples: int,
        seed: Seed,
        replicates: int = REPLICATES,
        key_dim: int | None = None,
    ) -> None:
        check_count("samples", samples)
        if key_dim is not None:
            check_count("key_dim", key_dim)
        check_choice("kind", kind, ("nngp", "ntk"))
        check_choice("readout", kernel.readout, ("last", "mean"))
        keep_freed_memory()
        self.kernel, self.kind, self.key_dim = kernel, kind, key_dim
        heads = len(kernel.scales)
        self.draws = -(-samples // (replicates * heads)) * heads  # of one replicate
        self.biases: tuple[str, ...] = (f"order 1/{self.draws} from the draws of one replicate",)
        if key_dim is not None:
            self.biases += (f"order 1/{key_dim} from a finite key dimension",)
        self._items: list[Tensor] = []
        empty = torch.empty(0, 0)
        self._replicates = [Replicate(seed.child(i), (), empty) for i in range(replicates)]

    def __len__(self) -> int:
        return len(self._items)

    def append(self, items: Sequence[Tensor]) -> None:
        self._replicates = [self._grown(r, items) for r in self._replicates]
        self._items = [*self._items, *items]  # a copy of this Gram keeps its own

    def matrix(self) -> Float[Tensor, "R P P"]:
        return torch.stack([r.gram for r in self._replicates])

    def cross(self, items: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        old, rows, own = len(self._items), [], []
        for replicate in self._replicates:
            gram = self._grown(replicate, items).gram
            rows.append(gram[old:, :old])
            own.append(gram.diagonal()[old:])
        return torch.stack(rows), torch.stack(own)

    def flops(self, items: Sequence[Tensor], appended: bool = False) -> int:
        every = [len(x) for x in (self._items if appended else [*self._items, *items])]
        longest, new, features = max(every), len(items), items[0].shape[1]
        total, draws = 0, self.draws * len(self._replicates)
        for block in range(self.kernel.depth):
            rank = features if block == 0 else sum(every)
            queries = longest
            if block == self.kernel.depth - 1 and self.kernel.readout == "last":
                queries = 1
            keys = rank if self.key_dim is None else self.key_dim
            scores = len(every) * queries * keys * (rank + longest)
            if self.key_dim is not None:
                scores += len(every) * longest * keys * rank
            products = 8 if self.kind == "ntk" else 2
            total += 2 * draws * (scores + products * new * queries * len(every) * longest**2)
        return total

    def _grown(self, replicate: Replicate, items: Sequence[Tensor]) -> Replicate:
        every = [*self._items, *items]
        stack = Stack.of(every, every[0].dtype)
        layout = Layout(stack, len(self._items))
        tokens = stack.root[0][stack.valid[0]]
        held: list[Block | None] = list(replicate.blocks) or [None] * self.kernel.depth
        blocks: list[Block] = []
        block = Block.first(tokens, self.kind == "ntk", held[0])
        for i in range(self.kernel.depth):
            last = i == self.kernel.depth - 1
            one_row = last and self.kernel.readout == "last"
            draws = (replicate.seed.child(i), self.draws)
            growth = Growth(self.kernel, layout, *draws, one_row, self.key_dim)
            nngp, ntk, block = growth.run(block)
            blocks.append(block)
            if not last:
                entering = None if ntk is None else layout.flat(ntk)
                block = Block.entered(layout.flat(nngp), entering, held[i + 1])
        rows = self._read(nngp if ntk is None else ntk, layout)
        return Replicate(replicate.seed, tuple(blocks), bordered(replicate.gram, rows))

    def _read(self, x: Tensor, layout: Layout) -> Float[Tensor, "Pn P"]:
        if self.kernel.readout == "last":
            return x[:, 0, :, 0]
        valid = layout.valid.to(x)
        weight = valid / valid.sum(1, keepdim=True)
        return torch.einsum("pa,paqb,qb->pq", weight[layout.inputs :], x, weight)


def new_gram(
    kernel: Kernel, kind: str, samples: int, seed: Seed, key_dim: int | None = None
) -> Gram:
    """An empty Gram; all but kernel and kind are of a Monte-Carlo one."""
    if isinstance(kernel, InfiniteFullyConnected):
        return ExactGram(kernel, kind)
    return GrowingGram(kernel, kind, samples=samples, seed=seed, key_dim=key_dim)
