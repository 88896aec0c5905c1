"""A population of equal `Transformer`s as one network with a leading member dimension.

The weights of all members are one matrix, (members, parameters), in the order of the module's
named parameters; a forward pass splits it once, so that its gradient is one matrix too. Products
are batched over members; for attention members are folded into the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from algocapture.models.transformer import (
    Rotation,
    Transformer,
    TransformerModule,
    rotary_angles,
    rotate,
)
from algocapture.types import TaskSpec

Weights = dict[str, Tensor]
ALIGNED = 64  # entries: a parameter that began elsewhere would keep products off the matrix units
SHORT = 1024  # positions up to which attention goes without cuDNN
BLOCK = ("norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias", "qkv", "out", "up", "down")
ENDS = ("norm.weight", "norm.bias", "head", "head_bias")


@dataclass(frozen=True)
class Layout:
    """Where each parameter of a module lies in a member's row."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, module: TransformerModule) -> Layout:
        named = list(module.named_parameters())
        return cls(tuple(n for n, _ in named), tuple(tuple(p.shape) for _, p in named))

    @property
    def sizes(self) -> list[int]:
        return [torch.Size(shape).numel() for shape in self.shapes]

    def split(self, rows: Float[Tensor, "members parameters"]) -> Weights:
        """The parameters by name, each with the leading member dimension."""
        parts = rows.split([_aligned(size) for size in self.sizes], dim=1)
        return {
            name: (part if part.shape[1] == size else part[:, :size]).unflatten(1, shape)
            for name, part, size, shape in zip(
                self.names, parts, self.sizes, self.shapes, strict=True
            )
        }

    def row(self, parameters: Iterable[Tensor]) -> Float[Tensor, " parameters"]:
        """One member's parameters, in order, with zeros between them."""
        flat = [parameter.detach().flatten() for parameter in parameters]
        return torch.cat([F.pad(part, (0, _aligned(len(part)) - len(part))) for part in flat])

    def decayed(self) -> Tensor:
        """1 for the entries of matrices, 0 for gains and biases."""
        return self.row(torch.full(shape, float(len(shape) >= 2)) for shape in self.shapes)


def flatten(modules: Sequence[TransformerModule]) -> Float[Tensor, "members parameters"]:
    """One row of weights for each module."""
    return torch.stack([Layout.of(module).row(module.parameters()) for module in modules])


def _aligned(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED


class StackedTransformer:
    """The forward pass of a population; the same function as each member's module.

    Of `compiled()`, what lies between two attentions is compiled, each piece on its own: all
    blocks share them, so that compiling does not grow with depth. The number of instances and the
    length may vary. The angles of the rotation come from outside, since a compiler would compute
    them anew for every entry that they turn (that was half of a step).
    """

    def __init__(self, config: Transformer, spec: TaskSpec, layout: Layout) -> None:
        self.config, self.spec, self.layout = config, spec, layout
        self.marking = False  # of the axes that vary, for the compiler
        self.embed, self.project, self.rest, self.read = self._pieces()

    def _pieces(self) -> tuple[Callable[..., Any], ...]:
        return self._embed, self._project, self._rest, self._read

    def compiled(self) -> StackedTransformer:
        # What was compiled for another model would make all that differs a variable, the width too.
        torch._dynamo.reset()
        made = StackedTransformer(self.config, self.spec, self.layout)
        made.marking = True
        made.embed, made.project, made.rest, made.read = (
            torch.compile(piece, fullgraph=True) for piece in made._pieces()
        )
        return made

    def __call__(
        self,
        rows: Float[Tensor, "members parameters"],
        inputs: Shaped[Tensor, "members n ..."],
        low: torch.dtype | None = None,
    ) -> Float[Tensor, "members n ..."]:
        """Products and attention are in `low`; embedding, residual stream, norms as rows are."""
        weights, low = self.layout.split(rows), low or rows.dtype
        x = self.embed(weights["embedding"], weights.get("marks"), self._varying(inputs))
        rotation = None
        if self.config.position == "rope":
            angles = rotary_angles(x.shape[2], self.config.head_width, self.config.rope_base, x)
            rotation = self._varying(angles[0], 0), self._varying(angles[1], 0)
        for number in range(self.config.depth):
            own = {name: weights[f"blocks.{number}.{name}"] for name in BLOCK}
            last = number == self.config.depth - 1 and self.config.reads(self.spec) == "last"
            x, query, key, value = self.project(own, self._varying(x), rotation, low, last)
            mixed = attend(query, key, value, causal=self.config.causal and not last)
            x = self.rest(own, self._varying(x), self._varying(mixed, 0, 2))
        return self.read({name: weights[name] for name in ENDS}, self._varying(x), low)  # type: ignore[no-any-return]

    def _varying(self, x: Tensor, *axes: int) -> Tensor:
        """What compiled parts must not be specialised to: by default the number, the length."""
        if self.marking:
            for axis in axes or range(1, min(x.ndim, 3)):
                torch._dynamo.maybe_mark_dynamic(x, axis)
        return x

    def _read(self, own: Weights, x: Tensor, low: torch.dtype) -> Tensor:
        readout = self.config.reads(self.spec)
        x = _norm(x, own["norm.weight"], own["norm.bias"], low)
        if readout == "last":
            x = x[:, :, -1]
        elif readout == "mean":
            x = x.mean(2)
        out = _linear(x, own["head"]) + _over(own["head_bias"], x.ndim)
        return out if self.config.is_class(self.spec) else out.squeeze(-1)

    def _embed(self, table: Tensor, marks: Tensor | None, inputs: Tensor) -> Tensor:
        """(members, n, length, width), the residual stream."""
        if self.spec.inputs == "tokens":
            members, vocab = table.shape[:2]
            offset = torch.arange(0, members * vocab, vocab, device=inputs.device)
            x = F.embedding(inputs + offset[:, None, None], table.flatten(0, 1))
        else:
            x = _linear(inputs.to(table), table[:, :-1].mT) + _over(table[:, -1], inputs.ndim)
        if marks is not None:
            positions = torch.tensor(self.spec.marks, device=x.device) % x.shape[2]
            x = x.index_add(2, positions, marks[:, None].expand(-1, x.shape[1], -1, -1).to(x))
        return x

    def _project(
        self, own: Weights, x: Tensor, rotation: Rotation | None, low: torch.dtype, last: bool
    ) -> tuple[Tensor, ...]:
        """The residual stream where it goes on; queries, keys, values, (members n, heads, ...)."""
        width = x.shape[-1]
        normed = _norm(x, own["norm1.weight"], own["norm1.bias"], low)
        if last:  # the last position sees all the others, causal or not
            x = x[:, :, -1:]
            query = _linear(normed[:, :, -1:], own["qkv"][:, :width])
            key, value = _linear(normed, own["qkv"][:, width:]).chunk(2, -1)
        else:
            query, key, value = _linear(normed, own["qkv"]).chunk(3, -1)
        query, key, value = (
            part.flatten(0, 1).unflatten(-1, (self.config.heads, -1)).transpose(1, 2)
            for part in (query, key, value)
        )
        if rotation is not None:
            query, key = rotate(query, rotation), rotate(key, rotation)
        return x, query, key, value

    def _rest(self, own: Weights, x: Tensor, mixed: Tensor) -> Tensor:
        """The block after its attention."""
        mixed = mixed.transpose(1, 2).flatten(2).unflatten(0, x.shape[:2])
        x = x + _linear(mixed, own["out"])
        normed = _norm(x, own["norm2.weight"], own["norm2.bias"], mixed.dtype)
        return x + _linear(F.gelu(_linear(normed, own["up"])), own["down"])


def attend(query: Tensor, key: Tensor, value: Tensor, causal: bool) -> Tensor:
    """Softmax attention. cuDNN plans anew for every shape, which costs more than short lengths
    take, and its kernels are made for long ones."""
    if not query.is_cuda or key.shape[2] > SHORT:
        return F.scaled_dot_product_attention(query, key, value, is_causal=causal)
    with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
        return F.scaled_dot_product_attention(query, key, value, is_causal=causal)


def _linear(x: Tensor, weight: Float[Tensor, "members out in"]) -> Tensor:
    """Each member's x W^T, in the precision of x."""
    return torch.bmm(x.flatten(1, -2), weight.to(x.dtype).mT).unflatten(1, x.shape[1:-1])


def _norm(x: Tensor, gain: Tensor, bias: Tensor, dtype: torch.dtype) -> Tensor:
    normed = F.layer_norm(x, x.shape[-1:])
    return (normed * _over(gain, x.ndim) + _over(bias, x.ndim)).to(dtype)


def _over(weight: Tensor, ndim: int) -> Tensor:
    """A vector for each member, (members, width), broadcast over the axes between."""
    return weight.reshape(len(weight), *[1] * (ndim - 2), weight.shape[-1])
