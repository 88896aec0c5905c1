"""One run through all blocks: score draws, attention moments, token-wise map, block after block."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from algocapture.kernels.attention import (
    SPLIT,
    FeatureLayer,
    Layer,
    Sums,
    attend,
    cheaper_by_features,
)
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

Covariance = Float[Tensor, "G P T P T"]
CACHE = 2**24  # bytes: on a CPU a workspace beyond the caches is slower; below, calls are


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

    root: Float[Tensor, "G P T r"]
    wants_ntk: bool
    held: tuple[Covariance, Covariance | None] | None = None  # None: both are F F^T

    @cached_property
    def nngp(self) -> Covariance:
        if self.held is not None:
            return self.held[0]
        flat = self.root.flatten(1, 2)
        return (
            (flat @ flat.mT).unflatten(2, self.root.shape[1:3]).unflatten(1, self.root.shape[1:3])
        )

    @property
    def ntk(self) -> Covariance | None:
        if self.held is not None:
            return self.held[1]
        return self.nngp if self.wants_ntk else None

    @property
    def one_covariance(self) -> bool:
        """No other matrix than the covariance: block 1, or the NTK is not asked for."""
        return self.held is None or self.held[1] is None or self.held[1] is self.held[0]

    def own(self, side: slice) -> Float[Tensor, "G P T T"]:
        """Each input's own covariance."""
        return torch.stack([self.nngp[:, p, :, p] for p in range(self.nngp.shape[1])[side]], 1)

    @classmethod
    def first(cls, stack: Stack, ntk: bool) -> State:
        """Block 1: the tokens are a root of their covariance, and the NTK equals it."""
        _, inputs, tokens, features = stack.root.shape
        state = cls(stack.root, ntk)
        if features <= inputs * tokens:
            return state
        return cls(_root(state.nngp), ntk, (state.nngp, state.ntk))


def _root(sigma: Covariance) -> Float[Tensor, "G P T r"]:
    factor, _ = eigen_root(sigma.flatten(3).flatten(1, 2))
    return factor.view(*sigma.shape[:3], -1)


@dataclass(frozen=True)
class Entry:
    """A block before its first draw."""

    stack: Stack
    state: State
    sampler: Sampler
    layer: Layer | FeatureLayer
    allowed: Bool[Tensor, "G P Q T"] | None
    sides: tuple[slice, slice]
    one_row: bool


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

    def begin(self, stack: Stack) -> Entry:
        """Block 1: the same for every run, roots and all."""
        return self._enter(State.first(stack, self.plan.ntk), stack, self.depth == 1)

    def run(self, entry: Entry, n: int, generator: torch.Generator) -> Moments:
        """Means over n draws in every block."""
        moments = self._block(entry, n, generator)
        for block in range(1, self.depth):
            state = self._next(moments, entry.stack)
            entry = self._enter(state, entry.stack, block == self.depth - 1)
            moments = self._block(entry, n, generator)
        return moments

    def _next(self, moments: Moments, stack: Stack) -> State:
        nngp, ntk = self.mlp(moments.nngp, moments.ntk, moments.q1, moments.q2)
        valid = stack.valid.to(nngp)
        both = valid[..., None, None] * valid[:, None, None]
        nngp = nngp * both
        return State(_root(nngp), ntk is not None, (nngp, None if ntk is None else ntk * both))

    def _enter(self, state: State, stack: Stack, last: bool) -> Entry:
        one_row = last and self.last_row
        sides = (self.left, self.right) if last else (slice(None), slice(None))
        allowed = stack.allowed(self.causal)
        if one_row and allowed is not None:
            allowed = last_rows(allowed, stack)
        layer = self._layer(state, stack, *sides, one_row)
        sampler = self._sampler(state, stack, one_row)
        return Entry(stack, state, sampler, layer, allowed, sides, one_row)

    def _block(self, entry: Entry, n: int, generator: torch.Generator) -> Moments:
        left, right = entry.sides
        total: Sums | None = None
        for size in self._chunks(entry, n):
            scale = self._scale(size, entry.state.root)
            scores = entry.sampler.draw(size, generator)
            if entry.one_row and scores.shape[3] > 1:
                scores = last_rows(scores, entry.stack)
            weights = attend(scores, entry.allowed, scale)
            sums = entry.layer.moments(weights[:, :, left], weights[:, :, right], scale)
            total = sums if total is None else total + sums
        assert total is not None
        nngp, q1, q2 = total.nngp / n, total.q1, total.q2
        if q1 is None or q2 is None:  # two equal sides: the variances are their diagonal
            q = total.nngp.flatten(3).flatten(1, 2).diagonal(dim1=-2, dim2=-1)
            q1 = q2 = q.view(nngp.shape[:3])
        ntk = None if total.ntk is None else total.ntk / n
        return Moments(nngp, q1[..., None, None] / n, q2[:, None, None] / n, ntk)

    def _layer(
        self, state: State, stack: Stack, left: slice, right: slice, last_row: bool
    ) -> Layer | FeatureLayer:
        same, ends = left == right, (stack, left, right)
        sides = (state.root[:, left], state.root[:, right])
        inputs, tokens, rank = sides[0].shape[1:]
        others = 0 if same else sides[1].shape[1]
        cheaper = cheaper_by_features(rank, tokens, inputs, others, state.wants_ntk)
        if cheaper and state.one_covariance:
            rows = None
            if state.wants_ntk and last_row:
                one, two = (last_rows(state.root, stack)[:, side, 0] for side in (left, right))
                rows = (one @ two.mT)[:, :, None, :, None]
            elif state.wants_ntk:
                rows = state.nngp[:, left, :, right]
            return FeatureLayer(sides, rows, same, self.projection)
        nngp = state.nngp[:, left, :, right]
        ntk = nngp if state.ntk is state.nngp else None
        if state.ntk is not None and ntk is None:
            ntk = state.ntk[:, left, :, right]
        both = (nngp, ntk)
        if last_row:
            both = (corner(nngp, *ends), None if ntk is None else corner(ntk, *ends))
        own = (None, None) if same else (state.own(left), state.own(right))
        return Layer(nngp, ntk, both, same, self.projection, own)

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

    def _chunks(self, entry: Entry, n: int) -> list[int]:
        """Sizes of the portions of n draws whose workspace fits the memory."""
        state = entry.state
        groups, inputs, tokens, rank = state.root.shape
        features = isinstance(entry.layer, FeatureLayer)
        entries = groups * workspace(inputs, tokens, rank, features, self.plan.ntk)
        cuda, unit = state.root.is_cuda, len(self.scales)
        memory = self.plan.memory if cuda else min(self.plan.memory, CACHE)
        fit = min(n, memory // (entries * state.root.element_size()))
        if cuda and n > fit >= SPLIT * unit:
            unit *= SPLIT
        size = max(1, fit // unit) * unit
        return [size] * (n // size) + ([n % size] if n % size else [])


def workspace(inputs: int, tokens: int, rank: int, features: bool, ntk: bool) -> int:
    """Entries that one draw for one group of inputs needs."""
    entries = 3 * inputs * tokens * (tokens + rank) + rank * rank
    if features:
        return entries + 2 * inputs * tokens * rank**2 * ntk
    return entries + (inputs * tokens) ** 2 * (10 if ntk else 3)


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
