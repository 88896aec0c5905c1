"""The paper's transformer (appendix A): the finite face of the infinite-width kernels.

A block maps tokens Z', of width n, to

    A^h = softmax(s (Z' W_Q^h) (Z' W_K^h)^T / sqrt(d_k))
    Z   = 1/sqrt(H) sum_h A^h Z' W_V^h                     values have full width in every head
    z_a <- W phi(LayerNorm(z_a)) + b

without residual, causal mask or output projection (the last two are fields: W_O^h acts on head
h's values, variance 1/n). Inputs enter as Z' = X W_emb. Weights have variance 1/fan-in, W has
sigma_W^2/n, b has sigma_b^2. The parameterisation says how this network trains:

- standard: the parameters are the weights above;
- ntk: parameters are N(0, 1), multiplied by the standard deviations above in the forward pass
  (so bias_var = 0 means no bias; same generator, same function as standard);
- mean-field: as ntk, with the outputs divided by a further sqrt(width). Gradient descent then
  needs a learning rate that grows with the width.

LayerNorm's gain and bias (1 and 0) are trained only with `layernorm_affine` (NOTES of the paper:
its NTK leaves them out).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.nn import functional as F

from algocapture.config import register
from algocapture.models.base import ModelConfig
from algocapture.models.checks import check_bool, check_choice, check_integer, check_number
from algocapture.models.scaled import PARAMETERISATIONS, Scaled
from algocapture.types import TaskSpec

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "erf": torch.erf,
    "identity": lambda x: x,
}
Readout = Literal["tokens", "last", "mean"]


@register
@dataclass(frozen=True)
class SimplifiedTransformer(ModelConfig):
    """`readout` and `outputs` left at None follow the task's spec."""

    depth: int = 1
    width: int = 128
    heads: int = 16
    key_width: int = 32  # d_k
    activation: Literal["relu", "gelu", "erf", "identity"] = "gelu"
    weight_var: float = 2.0  # sigma_W^2
    bias_var: float = 0.0  # sigma_b^2
    score_scale: float = 1.0  # s
    output_projection: bool = False
    causal: bool = False
    layernorm_affine: bool = False
    epsilon: float = 1e-5  # of LayerNorm
    parameterisation: Literal["standard", "ntk", "mean-field"] = "ntk"
    readout: Readout | None = None  # every token's outputs, the last one's, or their mean
    outputs: int | None = None  # rows of the last linear map; set: raw outputs of that width

    def __post_init__(self) -> None:
        for name in ("depth", "width", "heads", "key_width"):
            check_integer(name, getattr(self, name), 1)
        check_choice("activation", self.activation, ACTIVATIONS)
        check_choice("parameterisation", self.parameterisation, PARAMETERISATIONS)
        check_choice("readout", self.readout, (None, "tokens", "last", "mean"))
        for name in ("weight_var", "bias_var", "score_scale", "epsilon"):
            check_number(name, getattr(self, name), 0)
        for name in ("output_projection", "causal", "layernorm_affine"):
            check_bool(name, getattr(self, name))
        if self.outputs is not None:
            check_integer("outputs", self.outputs, 1)

    def build(self, spec: TaskSpec, generator: torch.Generator) -> nn.Module:
        return SimplifiedModule(self, spec, generator)

    def reads(self, spec: TaskSpec) -> Readout:
        if self.readout is not None:
            return self.readout
        return "tokens" if spec.readout == "every" else spec.readout

    def rows(self, spec: TaskSpec) -> int:
        """Rows of the last linear map."""
        return self.outputs or (spec.classes if spec.output == "class" else 1)

    def parameter_count(self, spec: TaskSpec) -> int:
        n, depth, rows = self.width, self.depth, self.rows(spec)
        attention = self.heads * n * (2 * self.key_width + n * (1 + self.output_projection))
        maps = (depth - 1) * (n + 1) * n + (n + 1) * rows
        embedding = (spec.vocab if spec.inputs == "tokens" else spec.features) * n
        return embedding + depth * (attention + 2 * n * self.layernorm_affine) + maps

    def flops(self, spec: TaskSpec, length: int) -> int:
        """2 m k n for every matrix product, attention in full."""
        last = self.reads(spec) == "last"
        embedding = 2 * length * spec.features * self.width if spec.inputs == "vectors" else 0
        blocks = (self.depth - 1) * self._block_flops(length, length, self.width)
        return (
            embedding + blocks + self._block_flops(length, 1 if last else length, self.rows(spec))
        )

    def _block_flops(self, keys: int, queries: int, outputs: int) -> int:
        n, d = self.width, self.key_width
        project = 2 * (queries + keys) * n * d + 2 * keys * n * n
        attend = 2 * queries * keys * (d + n)
        mix = 2 * queries * n * n * self.output_projection
        return self.heads * (project + attend + mix) + 2 * queries * n * outputs

    def activations(self, spec: TaskSpec, length: int) -> int:
        """Scores and their softmax, queries, values and mixture of all heads."""
        each = 2 * length + 2 * self.width + self.key_width
        return self.heads * length * each + 2 * length * self.width


class SimplifiedModule(nn.Module):
    """The network of a `SimplifiedTransformer`; works with torch.func.functional_call."""

    def __init__(
        self, config: SimplifiedTransformer, spec: TaskSpec, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.readout = config.reads(spec)
        self.tokens = spec.inputs == "tokens"
        self.squeeze = config.outputs is None and spec.output == "value"
        standard = config.parameterisation == "standard"
        # A token is a one-hot vector of length sqrt(V), so that x x^T / d is 1 for equal tokens.
        rows, std = (spec.vocab, 1.0) if self.tokens else (spec.features, spec.features**-0.5)
        self.embedding = Scaled(std, standard, generator, rows, config.width)
        self.blocks = nn.ModuleList(
            _Block(config, generator, config.rows(spec) if last else config.width)
            for last in [False] * (config.depth - 1) + [True]
        )
        mean_field = config.parameterisation == "mean-field"
        self.scale = config.width**-0.5 if mean_field else 1.0

    def forward(self, inputs: Shaped[Tensor, "n length ..."]) -> Float[Tensor, "n ..."]:
        x = self.blocks[-1](self._enter(inputs), last=self.readout == "last") * self.scale
        x = self._read(x)
        return x.squeeze(-1) if self.squeeze else x

    def root(self, inputs: Shaped[Tensor, "n length ..."]) -> Float[Tensor, "n ... features"]:
        """R of f = R a: what the last linear map's N(0, 1) parameters a are multiplied with, so
        that given all other weights f is a Gaussian process with covariance R R^T."""
        last = cast(_Block, self.blocks[-1])
        x = last.features(self._enter(inputs), last=self.readout == "last")
        return self._read(last.weight.root(x, last.bias) * self.scale)

    def _enter(self, inputs: Tensor) -> Tensor:
        """What enters the last block."""
        weight = self.embedding()
        x = F.embedding(inputs, weight) if self.tokens else inputs.to(weight) @ weight
        for block in self.blocks[:-1]:
            x = block(x)
        return x

    def _read(self, x: Tensor) -> Tensor:
        if self.readout == "last":
            return x[:, -1]
        return x.mean(1) if self.readout == "mean" else x


class _Block(nn.Module):
    def __init__(
        self, config: SimplifiedTransformer, generator: torch.Generator, outputs: int
    ) -> None:
        super().__init__()
        n, heads, standard = config.width, config.heads, config.parameterisation == "standard"
        self.n, self.phi, self.epsilon = n, ACTIVATIONS[config.activation], config.epsilon
        self.score_scale = config.score_scale / math.sqrt(config.key_width)
        self.causal, self.heads = config.causal, heads

        def scaled(std: float, *shape: int) -> Scaled:
            return Scaled(std, standard, generator, *shape)

        self.query = scaled(n**-0.5, heads, n, config.key_width)
        self.key = scaled(n**-0.5, heads, n, config.key_width)
        self.value = scaled(n**-0.5, heads, n, n)
        self.project = scaled(n**-0.5, heads, n, n) if config.output_projection else None
        self.weight = scaled(math.sqrt(config.weight_var / n), outputs, n)
        self.bias = scaled(math.sqrt(config.bias_var), outputs)
        affine = config.layernorm_affine
        self.gain = nn.Parameter(torch.ones(n)) if affine else None
        self.shift = nn.Parameter(torch.zeros(n)) if affine else None

    def forward(self, x: Tensor, last: bool = False) -> Tensor:
        return F.linear(self.features(x, last), self.weight(), self.bias())

    def features(self, x: Tensor, last: bool = False) -> Tensor:
        """What the block's linear map takes."""
        z = self._attend(x, last)
        return self.phi(F.layer_norm(z, (self.n,), self.gain, self.shift, self.epsilon))

    def _attend(self, x: Tensor, last: bool) -> Tensor:
        x = x.unsqueeze(1)  # (n, 1, length, width), against (heads, width, ...)
        query = (x[:, :, -1:] if last else x) @ self.query()
        scores = self.score_scale * query @ (x @ self.key()).transpose(-1, -2)
        if self.causal and not last:
            future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(future, -torch.inf)
        mixed = scores.softmax(-1) @ (x @ self.value())
        if self.project is not None:
            mixed = mixed @ self.project()
        return mixed.sum(1) / math.sqrt(self.heads)
