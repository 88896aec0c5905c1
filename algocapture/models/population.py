"""Many networks of one shape side by side: their N(0, 1) parameters with a leading axis of members.

Laws over initialisations and posteriors need thousands of small networks; one at a time they cost
launches, not arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from algocapture.models.scaled import Scaled

Parameters = dict[str, Tensor]


class _Root(nn.Module):
    """The same module with `root` for its forward pass, as functional_call wants it."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        root = cast(Callable[[Tensor], Tensor], self.module.root)
        return root(x)


class Population:
    """Networks like `module`, all of whose parameters are N(0, 1) at initialisation: a
    `FullyConnected` or `SimplifiedTransformer` in the ntk or mean-field parameterisation, with one
    output an input."""

    def __init__(self, module: nn.Module) -> None:
        held = [part for part in module.modules() if isinstance(part, Scaled)]
        if len(held) < len(list(module.parameters())) or not all(part.normal for part in held):
            raise ValueError(
                f"{type(module).__name__} has parameters that are not N(0, 1): use FullyConnected, "
                "or SimplifiedTransformer with parameterisation 'ntk' or 'mean-field' and "
                "layernorm_affine=False"
            )
        self.module = module
        self.shapes = {name: p.shape for name, p in module.named_parameters()}

    def draw(self, members: int, generator: torch.Generator, like: Tensor) -> Parameters:
        """Fresh parameters on the generator's device, of the dtype of `like`."""
        return {
            name: torch.randn(
                (members, *shape), generator=generator, dtype=like.dtype, device=like.device
            )
            for name, shape in self.shapes.items()
        }

    @property
    def size(self) -> int:
        """Parameters of one network."""
        return sum(shape.numel() for shape in self.shapes.values())

    def outputs(self, parameters: Parameters, x: Tensor) -> Float[Tensor, "members P"]:
        return vmap(self._output, in_dims=(0, None))(parameters, x)

    def roots(self, parameters: Parameters, x: Tensor) -> Float[Tensor, "members P columns"]:
        """R of f = R a with a the N(0, 1) parameters of the last linear map."""
        root = _Root(self.module)

        def one(held: Parameters, x: Tensor) -> Tensor:
            named = {f"module.{name}": value for name, value in held.items()}
            return _one_output(functional_call(root, named, (x,)), 2)

        return vmap(one, in_dims=(0, None))(parameters, x)

    def kernels(self, parameters: Parameters, x: Tensor) -> Float[Tensor, "members P P"]:
        """R R^T: the covariance of f over the last map's weights, given all others."""
        roots = self.roots(parameters, x)
        return roots @ roots.mT

    def tangents(self, parameters: Parameters, x: Tensor) -> Float[Tensor, "members P P"]:
        """Each network's own NTK, J J^T."""

        def one(held: Parameters, x: Tensor) -> Tensor:
            jacobian = jacrev(self._output)(held, x)
            flat = torch.cat([part.reshape(len(x), -1) for part in jacobian.values()], 1)
            return flat @ flat.T

        return vmap(one, in_dims=(0, None))(parameters, x)

    def _output(self, held: Parameters, x: Tensor) -> Tensor:
        return _one_output(functional_call(self.module, held, (x,)), 1)


def _one_output(values: Tensor, dims: int) -> Tensor:
    if values.ndim != dims:
        raise ValueError(f"the network has outputs {tuple(values.shape)}: one an input is needed")
    return values
