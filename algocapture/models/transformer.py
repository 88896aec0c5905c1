"""The practical transformer: pre-LN blocks with GELU, as decoder or encoder, of any depth.

    x <- x + W_o Attention(LN x)        x <- x + W_2 GELU(W_1 LN x)        output = W_head LN x

Initialisation: every matrix has entries N(0, 1/fan-in), the embedding N(0, 1) or smaller (which
lets the blocks weigh more in the residual stream from the start); W_o and W_2, which write into the
residual stream, are divided by sqrt(2 depth), so that the 2 depth branches together add what one
would: this is what lets 40 layers train.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.nn import functional as F

from algocapture.config import register
from algocapture.models.base import ModelConfig
from algocapture.models.checks import check_bool, check_choice, check_integer, check_number
from algocapture.types import TaskSpec

Readout = Literal["last", "mean", "every"]
Rotation = tuple[Tensor, Tensor]


@register
@dataclass(frozen=True)
class Transformer(ModelConfig):
    """Fields left at None follow the task's spec (`mlp`: four times the width)."""

    depth: int = 2
    width: int = 256
    heads: int = 4
    mlp: int | None = None
    causal: bool = True
    position: Literal["rope", "marks", "none"] = "rope"
    rope_base: float = 10_000.0
    embedding_scale: float = 1.0  # standard deviation of its entries at the start
    readout: Readout | None = None
    output: Literal["class", "value"] | None = None
    classes: int | None = None  # with a value task: a classification head, values = class ids

    def __post_init__(self) -> None:
        for name in ("depth", "width", "heads"):
            check_integer(name, getattr(self, name), 1)
        if self.width % self.heads:
            raise ValueError(f"heads = {self.heads} must divide width = {self.width}")
        if self.mlp is not None:
            check_integer("mlp", self.mlp, 1)
        check_bool("causal", self.causal)
        check_choice("position", self.position, ("rope", "marks", "none"))
        check_choice("readout", self.readout, (None, "last", "mean", "every"))
        check_choice("output", self.output, (None, "class", "value"))
        check_number("rope_base", self.rope_base, 1, above=True)
        check_number("embedding_scale", self.embedding_scale, 0, above=True)
        if self.position == "rope" and self.head_width % 2:
            raise ValueError(
                f"heads = {self.heads}: position 'rope' needs an even width per head, "
                f"got {self.width} / {self.heads} = {self.head_width}"
            )
        if self.classes is not None:
            check_integer("classes", self.classes, 2)
            if self.output == "value":
                raise ValueError(
                    f"classes = {self.classes} needs output 'class' or None, got 'value'"
                )

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def hidden(self) -> int:
        return 4 * self.width if self.mlp is None else self.mlp

    def build(self, spec: TaskSpec, generator: torch.Generator) -> nn.Module:
        if self.position == "marks" and not spec.marks:
            raise ValueError("position = 'marks', but the task's spec marks no position")
        self.outputs(spec)
        return TransformerModule(self, spec, generator)

    def is_class(self, spec: TaskSpec) -> bool:
        """Whether the output is logits over classes, not a value."""
        return self.output == "class" or (
            self.output is None and (self.classes is not None or spec.output == "class")
        )

    def outputs(self, spec: TaskSpec) -> int:
        """Width of the head."""
        if not self.is_class(spec):
            return 1
        if self.classes is None and spec.output == "value":
            raise ValueError("classes = None: output 'class' on a value task needs their number")
        if self.classes is not None and self.classes < spec.classes:
            raise ValueError(
                f"classes = {self.classes}, but the task has {spec.classes}; leave it at None"
            )
        return self.classes or spec.classes

    def reads(self, spec: TaskSpec) -> Readout:
        return self.readout or spec.readout

    def parameter_count(self, spec: TaskSpec) -> int:
        width, outputs = self.width, self.outputs(spec)
        tokens = spec.inputs == "tokens"
        embedding = spec.vocab * width if tokens else (spec.features + 1) * width
        marks = len(spec.marks) * width if self.position == "marks" else 0
        block = 4 * width**2 + 2 * width * self.hidden + 4 * width
        return embedding + marks + self.depth * block + 2 * width + (width + 1) * outputs

    def flops(self, spec: TaskSpec, length: int) -> int:
        """2 m k n for every matrix product of the forward pass; attention is counted in full,
        also under a causal mask."""
        width, every = self.width, length
        read = 1 if self.reads(spec) == "last" else length
        scored = length if self.reads(spec) == "every" else 1
        embedding = 2 * every * spec.features * width if spec.inputs == "vectors" else 0
        return (
            embedding
            + (self.depth - 1) * self._block_flops(every, every)
            + self._block_flops(every, read)
            + 2 * scored * width * self.outputs(spec)
        )

    def _block_flops(self, keys: int, queries: int) -> int:
        per_query = 2 * self.width * (2 * self.width + 2 * self.hidden)
        return (
            2 * keys * 2 * self.width**2 + queries * per_query + 2 * 2 * queries * keys * self.width
        )

    def activations(self, spec: TaskSpec, length: int) -> int:
        """The fullest moment of a block is its MLP: a residual stream before and after attention,
        its norm, queries, keys, values, the mixture, and for rotations queries and keys once more.
        Fused attention keeps no scores, so that this is linear in the length."""
        rotated = 2 * self.width + self.head_width if self.position == "rope" else 0
        normed = max(self.width, self.hidden)
        return length * (7 * self.width + rotated + self.hidden + normed)


class TransformerModule(nn.Module):
    """The network of a `Transformer`; nothing is drawn but from the generator given."""

    def __init__(self, config: Transformer, spec: TaskSpec, generator: torch.Generator) -> None:
        super().__init__()
        width = config.width
        self.readout = config.reads(spec)
        self.is_class = config.is_class(spec)
        self.tokens = spec.inputs == "tokens"
        self.head_width, self.base = config.head_width, config.rope_base
        self.rotary = config.position == "rope"
        # A vector's embedding has a bias of its own size: LayerNorm divides the rest's length out.
        entries = spec.vocab if self.tokens else spec.features + 1
        self.embedding = _normal(generator, entries, width, std=config.embedding_scale)
        self.marked = spec.marks if config.position == "marks" else ()
        if self.marked:
            self.marks = _normal(generator, len(self.marked), width)
        self.blocks = nn.ModuleList(_Block(config, generator) for _ in range(config.depth))
        self.norm = nn.LayerNorm(width)
        outputs = config.outputs(spec)
        self.head = _normal(generator, outputs, width, std=1 / math.sqrt(width))
        self.head_bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, inputs: Shaped[Tensor, "n length ..."]) -> Float[Tensor, "n ..."]:
        x = self._embed(inputs)
        rotation = None
        if self.rotary:
            rotation = rotary_angles(x.shape[1], self.head_width, self.base, x)
        for block in self.blocks[:-1]:
            x = block(x, rotation)
        # The last block is computed only where the readout looks.
        x = self.norm(self.blocks[-1](x, rotation, last=self.readout == "last"))
        if self.readout == "last":
            x = x[:, -1]
        elif self.readout == "mean":
            x = x.mean(1)
        out = F.linear(x, self.head, self.head_bias)
        return out if self.is_class else out.squeeze(-1)

    def _embed(self, inputs: Tensor) -> Tensor:
        if self.tokens:
            x = F.embedding(inputs, self.embedding)
        else:
            with torch.autocast(inputs.device.type, enabled=False):  # bf16 would move the points
                x = F.linear(inputs.to(self.embedding), self.embedding[:-1].T, self.embedding[-1])
        if self.marked:
            positions = torch.tensor(self.marked, device=x.device) % x.shape[1]
            x = x.index_add(1, positions, self.marks.to(x).expand(len(x), -1, -1))
        return x


class _Block(nn.Module):
    def __init__(self, config: Transformer, generator: torch.Generator) -> None:
        super().__init__()
        width, hidden = config.width, config.hidden
        self.head_width, self.causal = config.head_width, config.causal
        shrink = 1 / math.sqrt(2 * config.depth)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = _normal(generator, 3 * width, width, std=1 / math.sqrt(width))
        self.out = _normal(generator, width, width, std=shrink / math.sqrt(width))
        self.up = _normal(generator, hidden, width, std=1 / math.sqrt(width))
        self.down = _normal(generator, width, hidden, std=shrink / math.sqrt(hidden))

    def forward(self, x: Tensor, rotation: Rotation | None, last: bool = False) -> Tensor:
        """With `last`, only the last position's output, shape (n, 1, width)."""
        width = x.shape[-1]
        normed = self.norm1(x)
        if last:
            x = x[:, -1:]
            query = self._heads(F.linear(normed[:, -1:], self.qkv[:width]), rotation)
            key, value = F.linear(normed, self.qkv[width:]).chunk(2, -1)
            key = self._heads(key, rotation)
        else:  # queries and keys are turned in one go
            both, value = F.linear(normed, self.qkv).split((2 * width, width), -1)
            query, key = self._heads(both, rotation).chunk(2, 1)
        value = self._heads(value)
        # The last position sees all the others, causal or not.
        mixed = F.scaled_dot_product_attention(
            query, key, value, is_causal=self.causal and not last
        )
        x = x + F.linear(mixed.transpose(1, 2).flatten(2), self.out)
        return x + F.linear(F.gelu(F.linear(self.norm2(x), self.up)), self.down)

    def _heads(self, x: Tensor, rotation: Rotation | None = None) -> Tensor:
        """(n, positions, heads * width) -> (n, heads, positions, width), turned."""
        x = x.unflatten(-1, (-1, self.head_width)).transpose(1, 2)
        return x if rotation is None else rotate(x, rotation)


def rotary_angles(length: int, head_width: int, base: float, like: Tensor) -> Rotation:
    """cos and sin of position * base^(-2i/head_width), each (length, head_width / 2).

    The angles are formed in float64: position 10,000 in float32 would be off by 1e-3.
    """
    device = like.device
    frequency = base ** -(torch.arange(0, head_width, 2, device=device).double() / head_width)
    angles = torch.arange(length, device=device).double().outer(frequency)
    dtype = torch.promote_types(like.dtype, torch.float32)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotate(
    x: Float[Tensor, "n heads positions width"], rotation: Rotation
) -> Float[Tensor, "n heads positions width"]:
    """Turn the pairs (i, i + width/2) by their position's angles; a single query is the last."""
    cos, sin = (part[-x.shape[2] :] for part in rotation)
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1).to(x.dtype)


def _normal(generator: torch.Generator, rows: int, columns: int, std: float = 1.0) -> nn.Parameter:
    return nn.Parameter(torch.randn(rows, columns, generator=generator) * std)
