"""One run through all blocks: score draws, attention moments, token-wise map, block after block."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from algocapture.kernels.attention import Layer, attend, cheaper_by_features, variances
from algocapture.kernels.inputs import Stack
from algocapture.kernels.mlp import Mlp
from algocapture.kernels.roots import eigen_root
from algocapture.kernels.samplers import (
    ConditionalPair,
    FiniteKeys,
    RowRoot,
    Sampler,
    SharedRoot,
)

CACHE = 2**22  # bytes: on a CPU a workspace beyond the caches is slower, measured 2 times


@dataclass(frozen=True)
class Plan:
    """How a chain is run: everything that is not the kernel's mathematics."""

    sampler: str  # "shared", "row", "pair", "conditional" or "keys"
    ntk: bool
    memory: int  # bytes of workspace
    key_dim: int | None = None


@dataclass(frozen=True)
class Moments:
    """What a run leaves behind an attention layer, before its token-wise map."""

    nngp: Float[Tensor, "G Pl Q Pr Q"]
    q1: Float[Tensor, "G Pl Q 1 1"]  # variances of the left and right tokens
    q2: Float[Tensor, "G 1 1 Pr Q"]
    ntk: Float[Tensor, "G Pl Q Pr Q"] | None

    def values(self) -> dict[str, Tensor]:
        return {k: v for k, v in vars(self).items() if v is not None}


@dataclass(frozen=True)
class State:
    """Covariance and NTK between all tokens of each group, entering a block."""

    nngp: Float[Tensor, "G P T P T"]
    ntk: Float[Tensor, "G P T P T"] | None
    root: Float[Tensor, "G P T r"]

    @classmethod
    def first(cls, stack: Stack, ntk: bool) -> State:
        """Block 1: the tokens are a root of their covariance, and the NTK equals it."""
        groups, inputs, tokens, features = stack.root.shape
        flat = stack.root.flatten(1, 2)
        sigma = (flat @ flat.mT).view(groups, inputs, tokens, inputs, tokens)
        root = stack.root
        if features > inputs * tokens:
            root = _root(sigma)
        return cls(sigma, sigma if ntk else None, root)


def _root(sigma: Float[Tensor, "G P T P T"]) -> Float[Tensor, "G P T r"]:
    factor, _ = eigen_root(sigma.flatten(3).flatten(1, 2))
    return factor.view(*sigma.shape[:3], -1)


@dataclass(frozen=True)
class Chain:
    """The blocks of one kernel over one stack of inputs."""

    depth: int
    mlp: Mlp
    scales: tuple[float, ...]
    causal: bool
    projection: bool
    last_row: bool  # the readout needs the last token alone
    left: slice
    right: slice
    plan: Plan

    def run(self, stack: Stack, n: int, generator: torch.Generator) -> Moments:
        """Means over n draws in every block."""
        state, every = State.first(stack, self.plan.ntk), slice(None)
        for _ in range(self.depth - 1):
            moments = self._block(state, stack, n, generator, every, every, False)
            state = self._next(moments, stack)
        return self._block(state, stack, n, generator, self.left, self.right, self.last_row)

    def _next(self, moments: Moments, stack: Stack) -> State:
        nngp, ntk = self.mlp(moments.nngp, moments.ntk, moments.q1, moments.q2)
        valid = stack.valid.to(nngp)
        both = valid[..., None, None] * valid[:, None, None]
        nngp = nngp * both
        return State(nngp, None if ntk is None else ntk * both, _root(nngp))

    def _block(
        self,
        state: State,
        stack: Stack,
        n: int,
        generator: torch.Generator,
        left: slice,
        right: slice,
        last_row: bool,
    ) -> Moments:
        sampler = self._sampler(state, stack, last_row)
        allowed = stack.allowed(self.causal)
        if last_row and allowed is not None:
            allowed = last_rows(allowed, stack)
        layer = self._layer(state, stack, left, right, last_row)
        own = torch.stack([state.nngp[:, p, :, p] for p in range(state.nngp.shape[1])], 1)
        total: list[Tensor] = []
        for size in self._chunks(state, n):
            scale = self._scale(size, state.nngp)
            scores = sampler.draw(size, generator)
            if last_row and scores.shape[3] > 1:
                scores = last_rows(scores, stack)
            weights = attend(scores, allowed, scale)
            nngp, ntk = layer.moments(weights[:, :, left], weights[:, :, right], scale)
            q = nngp.new_empty(0) if layer.symmetric else variances(weights, own)
            parts = [nngp, q] + ([] if ntk is None else [ntk])
            total = parts if not total else [x + y for x, y in zip(total, parts, strict=True)]
        means = [x / n for x in total]
        ntk = means[2] if self.plan.ntk else None
        if layer.symmetric:
            q = means[0].flatten(3).flatten(1, 2).diagonal(dim1=-2, dim2=-1)
            q1 = q2 = q.view(means[0].shape[:3])
        else:
            q1, q2 = means[1][:, left], means[1][:, right]
        return Moments(means[0], q1[..., None, None], q2[:, None, None], ntk)

    def _layer(
        self, state: State, stack: Stack, left: slice, right: slice, last_row: bool
    ) -> Layer:
        nngp = state.nngp[:, left, :, right]
        ntk = nngp if state.ntk is state.nngp else None
        if state.ntk is not None and ntk is None:
            ntk = state.ntk[:, left, :, right]
        rows = (nngp, ntk)
        if last_row:
            ends = (stack, left, right)
            rows = (corner(nngp, *ends), None if ntk is None else corner(ntk, *ends))
        roots = None
        tokens, rank = state.root.shape[2:]
        first = state.ntk is None or state.ntk is state.nngp
        if first and cheaper_by_features(rank, tokens, state.ntk is not None):
            roots = (state.root[:, left], state.root[:, right])
        return Layer(nngp, ntk, rows, left == right, self.projection, roots)

    def _sampler(self, state: State, stack: Stack, last_row: bool) -> Sampler:
        name = self.plan.sampler
        if name == "conditional":
            return ConditionalPair.of(state.nngp)
        if name == "keys":
            assert self.plan.key_dim is not None
            return FiniteKeys(state.root, self.plan.key_dim)
        if last_row and name in ("row", "pair"):
            return RowRoot.of(state.root, last_rows(state.root, stack).squeeze(2))
        return SharedRoot(state.root)

    def _scale(self, n: int, like: Tensor) -> Tensor | float:
        if len(self.scales) == 1:
            return self.scales[0]
        return torch.tensor(self.scales, dtype=like.dtype, device=like.device).repeat(
            n // len(self.scales)
        )

    def _chunks(self, state: State, n: int) -> list[int]:
        """Sizes of the portions of n draws whose workspace fits the memory."""
        groups, inputs, tokens, rank = state.root.shape
        first = state.ntk is None or state.ntk is state.nngp
        entries = groups * (3 * inputs * tokens * (tokens + rank) + rank * rank)
        if first and cheaper_by_features(rank, tokens, self.plan.ntk):
            entries += 2 * groups * inputs * tokens * rank**2 * self.plan.ntk
        else:
            entries += state.nngp.numel() * (10 if self.plan.ntk else 3)
        heads = len(self.scales)
        memory = self.plan.memory if state.root.is_cuda else min(self.plan.memory, CACHE)
        fit = memory // (entries * state.nngp.element_size())
        size = max(1, min(n, fit) // heads) * heads
        return [size] * (n // size) + ([n % size] if n % size else [])


def last_rows(x: Float[Tensor, "*n G P T k"], stack: Stack) -> Float[Tensor, "*n G P 1 k"]:
    """The row of each input's last token."""
    end = (stack.lengths - 1)[..., None, None].expand(*stack.lengths.shape, 1, x.shape[-1])
    return torch.take_along_dim(x, end.expand(*x.shape[:-4], *end.shape), -2)


def corner(x: Tensor, stack: Stack, left: slice, right: slice) -> Float[Tensor, "G Pl 1 Pr 1"]:
    """A covariance between all tokens, at the last token of each input."""
    end1, end2 = stack.lengths[:, left] - 1, stack.lengths[:, right] - 1
    g, p, q = (torch.arange(x.shape[i], device=x.device) for i in (0, 1, 3))
    picked = x[g[:, None, None], p[:, None], end1[:, :, None], q[None, None, :], end2[:, None, :]]
    return picked[:, :, None, :, None]
