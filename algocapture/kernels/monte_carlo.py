"""From a request to an estimate: which sampler, how many independent parts, which readout."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from jaxtyping import Int
from torch import Tensor

from algocapture.allocator import keep_freed_memory
from algocapture.kernels.attention import cheaper_by_features
from algocapture.kernels.chain import Chain, Entry, Plan, workspace
from algocapture.kernels.checks import check_choice
from algocapture.kernels.estimate import Estimates, Values, Work
from algocapture.kernels.inputs import Inputs, Stack, as_list
from algocapture.kernels.mlp import Mlp

SAMPLERS = ("auto", "shared", "row", "pair", "conditional", "keys")
SHARED_TOKENS = 2000  # a full shared root costs N^3 a draw: above, pairs
DTYPES = {"float32": torch.float32, "float64": torch.float64, "tf32": torch.float32}


class Kernel(Protocol):
    """The fields of `InfiniteTransformer` that a run needs."""

    @property
    def depth(self) -> int: ...
    @property
    def causal(self) -> bool: ...
    @property
    def output_projection(self) -> bool: ...
    @property
    def readout(self) -> str: ...
    @property
    def scales(self) -> tuple[float, ...]: ...
    @property
    def mlp(self) -> Mlp: ...


@dataclass(frozen=True)
class Request:
    """The arguments of `estimate`."""

    x1: Inputs
    x2: Inputs | None
    samples: int
    generator: torch.Generator
    kinds: tuple[str, ...]
    sampler: str
    key_dim: int
    dtype: torch.dtype | str | None
    memory: int


@contextmanager
def precision(name: str) -> Iterator[None]:
    """float32 products in full or in TF32, whatever the global setting is."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def start(kernel: Kernel, request: Request) -> Estimates:
    """Draw the first samples of an estimate."""
    keep_freed_memory()
    first = as_list("x1", request.x1)
    second = None if request.x2 is None else as_list("x2", request.x2)
    name = _dtype(request, first + (second or []))
    stack = Stack.of([x.detach() for x in first + (second or [])], DTYPES[name])
    if not isinstance(request.generator, torch.Generator):
        raise ValueError(f"generator = {request.generator!r}: expected a torch.Generator")
    if request.generator.device.type != stack.root.device.type:
        raise ValueError(
            f"generator is on {request.generator.device}, the inputs on {stack.root.device}"
        )
    run = Run(kernel, request, stack, len(first), second is None, _sampler(kernel, request, stack))
    run.check_memory()
    if "ntk" in request.kinds:
        run.check_range()
    parts = run.parts()
    heads = len(kernel.scales)
    size = math.ceil(math.ceil(request.samples / parts) / heads) * heads

    def draw(n: int) -> Values:
        with precision(name):
            return run.draw(n)

    finish: Callable[[Values], Values] = run.finish if kernel.depth == 1 else _same
    return Estimates.start(
        Work(draw, finish, run.settle, size, name, run.label(), run.biases(size)), parts
    )


def _same(values: Values) -> Values:
    return values


def _dtype(request: Request, items: Sequence[Tensor]) -> str:
    name = request.dtype
    if name is None and len({item.dtype for item in items}) > 1:
        given = ", ".join(sorted({str(item.dtype) for item in items}))
        raise ValueError(f"inputs are of {given}: convert them, or name a dtype")
    if name is None or isinstance(name, torch.dtype):
        name = str(name or items[0].dtype).removeprefix("torch.")
    check_choice("dtype", name, tuple(DTYPES))
    return name


def _sampler(kernel: Kernel, request: Request, stack: Stack) -> str:
    check_choice("sampler", request.sampler, SAMPLERS)
    if request.sampler == "row" and kernel.readout != "last":
        raise ValueError(
            f"sampler = 'row' draws the last token's scores, readout = {kernel.readout!r} needs all"
        )
    if request.sampler != "auto":
        return request.sampler
    tokens = int(stack.lengths.sum())
    middle = kernel.depth - (kernel.readout == "last")  # blocks whose scores are drawn in full
    if tokens > SHARED_TOKENS and middle > 1:
        return "pair"
    return "row" if kernel.readout == "last" else "shared"


@dataclass(frozen=True)
class Run:
    """One request, ready to draw."""

    kernel: Kernel
    request: Request
    stack: Stack
    first: int  # inputs of x1; the others are of x2
    symmetric: bool
    sampler: str

    @property
    def by_pairs(self) -> bool:
        return self.sampler in ("pair", "conditional")

    def label(self) -> str:
        """What draws the scores, by blocks where they differ."""
        if self.sampler == "keys":
            return f"keys (d_k = {self.request.key_dim})"
        if self.sampler == "row" and self.kernel.depth > 1:
            return "shared, row in the last block"
        return self.sampler

    def check_memory(self) -> None:
        """One draw, what is kept of every part, and the covariances behind a block must fit."""
        _, inputs, tokens, rank = self.stack.root.shape
        rows = 1 if self.kernel.readout == "last" else tokens
        group, side = (2, tokens) if self.by_pairs else (inputs, tokens)
        ntk = "ntk" in self.request.kinds
        features = cheaper_by_features(rank, tokens, group, 0, ntk)
        entries = 4 * (inputs * rows) ** 2 * len(self.request.kinds)
        if self.kernel.depth > 1 or not features:
            entries += workspace(group, side, min(rank, group * side), False, ntk)
        else:
            entries += group * rows * (2 * side + rank + (rank * rank if ntk else 0))
        needed = entries * self.stack.root.element_size()
        if needed > self.request.memory:
            raise ValueError(
                f"memory = {self.request.memory}: these {inputs} inputs of {tokens} tokens need "
                f"about {needed:.2g} bytes with sampler {self.sampler!r} and readout "
                f"{self.kernel.readout!r}; raise memory, or compute the Gram in tiles of inputs"
            )

    def check_range(self) -> None:
        """The NTK's traces are differences of products of two covariances."""
        largest = float(self.stack.root.square().sum(-1).max())
        scale = max(self.kernel.scales)
        if torch.finfo(self.stack.root.dtype).eps * (scale * largest) ** 2 > 1e-3:
            raise ValueError(
                f"tokens reach |x|^2 / d = {largest:.3g}: the NTK would be lost in rounding at "
                f"{self.stack.root.dtype}; rescale the inputs so that it is of order 1"
            )

    def parts(self) -> int:
        """Independent parts at the start: few enough that each is large and all fit in memory."""
        samples = self.request.samples
        if self.kernel.depth > 1:
            return max(1, min(samples // 2, max(8, min(32, samples // 256))))
        rows = 1 if self.kernel.readout == "last" else self.stack.root.shape[2]
        inputs = self.stack.root.shape[1]
        entry = (inputs * rows) ** 2 * len(self.request.kinds) * self.stack.root.element_size()
        fit = max(4, self.request.memory // (2 * entry))
        return max(1, min(32, fit, samples // len(self.kernel.scales)))

    def chain(self, left: slice, right: slice) -> Chain:
        kernel, request = self.kernel, self.request
        plan = Plan(self.sampler, "ntk" in request.kinds, request.memory, request.key_dim)
        return Chain(
            kernel.depth,
            kernel.mlp,
            kernel.scales,
            kernel.causal,
            kernel.output_projection,
            kernel.readout == "last",
            left,
            right,
            plan,
        )

    def draw(self, n: int) -> Values:
        """One independent run: moments at depth 1, values at depth >= 2."""
        generator = self.request.generator
        if self.by_pairs:
            values = self._pairs(n, generator)
        else:
            chain, entry = self._whole
            moments = chain.run(entry, n, generator)
            values = {k: v[0] for k, v in moments.values().items()}
        return values if self.kernel.depth == 1 else self.finish(values)

    @cached_property
    def _whole(self) -> tuple[Chain, Entry]:
        left, right = slice(None), slice(None)
        if not self.symmetric:
            left, right = slice(0, self.first), slice(self.first, None)
        chain = self.chain(left, right)
        return chain, chain.begin(self.stack)

    @cached_property
    def _index(self) -> Int[Tensor, "pairs 2"]:
        inputs = self.stack.root.shape[1]
        if self.symmetric:
            index = torch.triu_indices(inputs, inputs).T
        else:
            one, two = torch.arange(self.first), torch.arange(self.first, inputs)
            index = torch.cartesian_prod(one, two).view(-1, 2)
        return index.to(self.stack.root.device)

    @cached_property
    def _one_portion(self) -> Entry:
        """All pairs, where they fit the memory together: kept for every run."""
        return self.chain(slice(0, 1), slice(1, 2)).begin(self.stack.pairs(self._index))

    def _pairs(self, n: int, generator: torch.Generator) -> Values:
        """Each pair of inputs from draws of its own."""
        inputs, tokens = self.stack.root.shape[1:3]
        each = 4 * (2 * tokens) ** 2 * self.stack.root.element_size() * 20
        chain, portion = self.chain(slice(0, 1), slice(1, 2)), max(1, self.request.memory // each)
        if len(self._index) <= portion:
            entries = iter([self._one_portion])
        else:
            chunks = self._index.split(portion)
            entries = (chain.begin(self.stack.pairs(chunk)) for chunk in chunks)
        done = [chain.run(entry, n, generator).values() for entry in entries]
        flat = {k: torch.cat([d[k] for d in done])[:, 0, :, 0] for k in done[0]}
        rows, columns = self._index[:, 0], self._index[:, 1] - (0 if self.symmetric else self.first)
        shape = (self.first, inputs if self.symmetric else inputs - self.first)
        return {k: _place(flat, k, rows, columns, shape, self.symmetric) for k in flat}

    def finish(self, values: Values) -> Values:
        """The token-wise map of the last block, and the readout."""
        out, ntk = self.kernel.mlp(values["nngp"], values.get("ntk"), values["q1"], values["q2"])
        both = {"nngp": out} | ({} if ntk is None else {"ntk": ntk})
        return {k: self._read(both[k]) for k in self.request.kinds}

    def _read(self, x: Tensor) -> Tensor:
        if self.kernel.readout == "last":
            return x[:, 0, :, 0]
        valid = self.stack.valid[0].to(x)
        left = valid[: x.shape[0]]
        right = valid[-x.shape[2] :]
        if self.kernel.readout == "mean":
            left, right = (v / v.sum(1, keepdim=True) for v in (left, right))
            return torch.einsum("pa,paqb,qb->pq", left, x, right)
        x = x * left[:, :, None, None] * right
        one, two = int(left.sum(1).max()), int(right.sum(1).max())
        return x[:, :one, :, :two].permute(0, 2, 1, 3)

    def settle(self, value: Tensor) -> tuple[Tensor, float]:
        """Independent pairs do not make a positive semi-definite Gram: project and say so."""
        if self.symmetric:  # exactly, not to rounding
            value = (value + (value.mT if value.ndim == 2 else value.permute(1, 0, 3, 2))) / 2
        if not (self.by_pairs and self.symmetric):
            return value, 0.0
        wide = value if value.ndim == 2 else value.permute(0, 2, 1, 3).flatten(2).flatten(0, 1)
        values, vectors = torch.linalg.eigh((wide + wide.T) / 2)
        if values[0] >= 0:
            return value, 0.0
        psd = (vectors * values.clamp(min=0)) @ vectors.T
        moved = float((psd - wide).norm() / wide.norm())
        if value.ndim == 2:
            return psd, moved
        p, _, t, _ = value.shape
        return psd.view(p, t, p, t).permute(0, 2, 1, 3), moved

    def biases(self, size: int) -> tuple[str, ...]:
        out = []
        if self.kernel.depth > 1:
            out.append(f"order 1/{size} from feeding one block's estimate to the next")
        if self.sampler == "keys":
            out.append(f"order 1/{self.request.key_dim} from a finite key dimension")
        return tuple(out)


def _place(
    flat: Values, kind: str, rows: Tensor, columns: Tensor, shape: tuple[int, int], mirror: bool
) -> Tensor:
    """Results (G, a, b) of pairs at their places (P1, a, P2, b) in the Gram."""
    x = flat[kind]
    out = x.new_zeros((*shape, *x.shape[1:]))
    if mirror:
        other = {"q1": "q2", "q2": "q1"}.get(kind, kind)
        out[columns, rows] = flat[other].mT
    out[rows, columns] = x
    return out.permute(0, 2, 1, 3)
