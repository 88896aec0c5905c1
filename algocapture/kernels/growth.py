"""One block of one replicate, between newly appended inputs and all inputs so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from algocapture.kernels.attention import Layer, Sums, Weights, attend
from algocapture.kernels.chain import corner, last_rows
from algocapture.kernels.inputs import Stack
from algocapture.kernels.roots import GrowingRoot
from algocapture.kernels.transformer import InfiniteTransformer
from algocapture.rng import Seed
from algocapture.types import torch_generator

CHUNK = 16  # draws at a time: part of the numbers, as each chunk has a seed of its own


def bordered(old: Float[Tensor, "n n"], rows: Float[Tensor, "m nm"]) -> Float[Tensor, "nm nm"]:
    """A symmetric matrix with `rows` appended; old entries keep every bit."""
    n = len(old)
    cross, own = rows[:, :n], rows[:, n:]
    top = torch.cat([old.to(rows), cross.T], 1)
    return torch.cat([top, torch.cat([cross, (own + own.T) / 2], 1)])


@dataclass(frozen=True)
class Block:
    """What one block keeps over all N tokens appended so far."""

    nngp: Float[Tensor, "N N"]  # entering the block
    ntk: Float[Tensor, "N N"] | None
    root: GrowingRoot
    strips: tuple[int, ...]  # columns that each growth added to the root
    variance: Float[Tensor, " rows"]  # of its query rows behind the attention

    @classmethod
    def first(cls, tokens: Float[Tensor, "N d"], ntk: bool, held: Block | None) -> Block:
        """Block 1: the tokens are the root, so nothing grows but its rows."""
        sigma = (
            tokens @ tokens.T
            if held is None
            else bordered(held.nngp, tokens[len(held.nngp) :] @ tokens.T)
        )
        root = GrowingRoot(tokens, tokens.new_empty(tokens.shape[1], 0))
        variance = tokens.new_empty(0) if held is None else held.variance
        return cls(sigma, sigma if ntk else None, root, (tokens.shape[1],), variance)

    @classmethod
    def entered(cls, nngp: Tensor, ntk: Tensor | None, held: Block | None) -> Block:
        """A later block, from the rows (new tokens, all tokens) that entered it."""
        if held is None:
            empty = nngp.new_empty(0, 0)
            sigma = bordered(empty, nngp)
            root = GrowingRoot.of(sigma)
            theta = None if ntk is None else bordered(empty, ntk)
            return cls(sigma, theta, root, (root.factor.shape[1],), nngp.new_empty(0))
        n, columns = len(held.nngp), held.root.factor.shape[1]
        sigma = bordered(held.nngp, nngp)
        root = held.root.grow(sigma[n:, :n], sigma[n:, n:])
        theta = None if ntk is None or held.ntk is None else bordered(held.ntk, ntk)
        strips = (*held.strips, root.factor.shape[1] - columns)
        return cls(sigma, theta, root, strips, held.variance)


@dataclass(frozen=True)
class Layout:
    """Where old and new inputs lie: tokens one after the other, or padded to (P, T)."""

    stack: Stack
    inputs: int  # old inputs

    @property
    def valid(self) -> Bool[Tensor, "P T"]:
        return self.stack.valid[0]

    @property
    def old_tokens(self) -> int:
        return int(self.stack.lengths[0, : self.inputs].sum())

    def flat(self, x: Float[Tensor, "Pn T P T"]) -> Float[Tensor, "Nn N"]:
        return x[self.valid[self.inputs :]][:, self.valid]

    def padded(self, x: Float[Tensor, "N N"]) -> Float[Tensor, "1 Pn T P T"]:
        """The rows of the new inputs."""
        new = self.valid[self.inputs :]
        half = x.new_zeros(*new.shape, x.shape[1])
        half[new] = x[self.old_tokens :]
        out = x.new_zeros(*new.shape, *self.valid.shape)
        out[:, :, self.valid] = half
        return out[None]

    def rows(self, x: Float[Tensor, "N r"]) -> Float[Tensor, "1 P T r"]:
        out = x.new_zeros(*self.valid.shape, x.shape[1])
        out[self.valid] = x
        return out[None]


@dataclass(frozen=True)
class Growth:
    """One block's draws."""

    kernel: InfiniteTransformer
    layout: Layout
    seed: Seed
    draws: int
    one_row: bool  # the readout needs the last token alone
    key_dim: int | None = None  # of queries and keys; None: infinite, as in the limit

    def run(self, block: Block) -> tuple[Tensor, Tensor | None, Block]:
        """(NNGP, NTK) behind the block, (Pn, Q, P, Q), and the block with its variances."""
        old, stack = self.layout.inputs, self.layout.stack
        nngp = self.layout.padded(block.nngp)
        ntk = nngp if block.ntk is block.nngp else None
        if block.ntk is not None and ntk is None:
            ntk = self.layout.padded(block.ntk)
        rows = (nngp, ntk)
        if self.one_row:
            sides = (stack, slice(old, None), slice(None))
            rows = (corner(nngp, *sides), None if ntk is None else corner(ntk, *sides))
        own = torch.stack([nngp[:, i, :, old + i] for i in range(nngp.shape[1])], 1)
        layer = Layer(nngp, ntk, rows, False, self.kernel.output_projection, (own, None))
        total: Sums | None = None
        for weights, scale in self._weights(block):
            sums = layer.moments(weights[:, :, old:], weights, scale)
            total = sums if total is None else total + sums
        assert total is not None
        assert total.q1 is not None
        q1, ntk = total.q1 / self.draws, total.ntk
        fresh = q1.flatten() if self.one_row else q1[0][self.layout.valid[old:]]
        block = replace(block, variance=torch.cat([block.variance, fresh]))
        q = block.variance[:, None]
        q = q if self.one_row else self.layout.rows(q)[0, :, :, 0]
        out, theta = self.kernel.mlp(
            total.nngp[0] / self.draws,
            None if ntk is None else ntk[0] / self.draws,
            q[old:, :, None, None],
            q,
        )
        return out, theta, block

    def _weights(self, block: Block) -> Iterator[tuple[Weights, Tensor]]:
        root = self.layout.rows(block.root.factor)
        queries = last_rows(root, self.layout.stack) if self.one_row else root
        allowed = self.layout.stack.allowed(self.kernel.causal)
        if self.one_row and allowed is not None:
            allowed = last_rows(allowed, self.layout.stack)
        scales = torch.tensor(self.kernel.scales, dtype=root.dtype, device=root.device)
        for start in range(0, self.draws, CHUNK):
            count = min(CHUNK, self.draws - start)
            scores = self._scores(block, queries, root, start, count)
            index = torch.arange(start, start + count, device=root.device) % len(scales)
            scale = scales[index]
            yield attend(scores, allowed, scale), scale

    def _scores(
        self, block: Block, queries: Tensor, root: Tensor, start: int, count: int
    ) -> Float[Tensor, "n 1 P Q T"]:
        """F_p U F_p^T; with finite keys U = A B^T / sqrt(d_k), in 1/r of the work."""
        flat, shape = queries.flatten(1, 2), queries.shape[1:3]
        if self.key_dim is None:
            u = self._normal(block, start, count)
            return (flat @ u[:, None]).unflatten(2, shape) @ root.mT
        a, b = self._keys(block, start, count)[:, :, None]
        left = (flat @ a).unflatten(2, shape)
        right = (root.flatten(1, 2) @ b).unflatten(2, root.shape[1:3])
        return left @ right.mT / self.key_dim**0.5

    def _keys(self, block: Block, start: int, count: int) -> Float[Tensor, "2 n r k"]:
        """A and B; what was appended later has rows of its own."""
        assert self.key_dim is not None
        parts = []
        for k, size in enumerate(block.strips):
            generator = torch_generator(self.seed.child(start, k), block.root.factor.device)
            parts.append(_normal(2 * count, size, self.key_dim, generator, block.root.factor))
        return torch.cat(parts, 1).unflatten(0, (2, count))

    def _normal(self, block: Block, start: int, count: int) -> Float[Tensor, "n r r"]:
        """U, whose older corner does not depend on what was appended later."""
        factor = block.root.factor
        u = factor.new_empty(count, factor.shape[1], factor.shape[1])
        end = 0
        for k, size in enumerate(block.strips):
            generator = torch_generator(self.seed.child(start, k), factor.device)
            begin, end = end, end + size
            u[:, begin:end, :end] = _normal(count, size, end, generator, u)
            u[:, :begin, begin:end] = _normal(count, begin, size, generator, u)
        return u


def _normal(n: int, rows: int, columns: int, generator: torch.Generator, like: Tensor) -> Tensor:
    shape = (n, rows, columns)
    return torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device)
