"""Kernels of finite networks, with error bars: the tool that checks the theory.

The empirical NNGP is the mean over initialisations of f(x1) f(x2)^T, the empirical NTK that of
J(x1) J(x2)^T, both averaged over the network's outputs (the last axis of what it returns).
A finite network differs from its infinite limit by a bias of order 1/width, which no number of
initialisations removes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vjp, vmap

from algocapture.kernels.checks import check_choice, check_count
from algocapture.kernels.estimate import Estimates, Values, Work

Build = Callable[[torch.Generator], nn.Module]
Parameters = dict[str, Tensor]


def empirical(
    build: Build,
    x1: Tensor,
    x2: Tensor | None = None,
    *,
    samples: int,
    generator: torch.Generator,
    kinds: Sequence[str] = ("nngp",),
    contraction: str = "jacobian",
) -> Estimates:
    """Kernels of the modules that `build` makes: (P1, P2), or (P1, P2, T1, T2) of token outputs.

    A module maps (P, ...) to (P, outputs) or (P, T, outputs); `samples` counts initialisations.
    `contraction` of the NTK: "jacobian" multiplies both Jacobians (outputs x parameters);
    "products" makes a vector-Jacobian and a Jacobian-vector product for each output of x2, in
    the memory of a few networks.
    """
    check_count("samples", samples)
    check_choice("contraction", contraction, tuple(CONTRACTIONS))
    for kind in kinds:
        check_choice("kind", kind, ("nngp", "ntk"))
    second = x1 if x2 is None else x2

    def run(_: int) -> Values:
        module = build(generator)
        values = {}
        if "nngp" in kinds:
            with torch.no_grad():
                values["nngp"] = _covariance(module(x1), module(second))
        if "ntk" in kinds:
            values["ntk"] = CONTRACTIONS[contraction](module, x1, second).detach()
        return values

    dtype = str(x1.dtype).removeprefix("torch.")
    bias = ("order 1/width of the networks",)
    work = Work(run, lambda v: v, lambda v: (v, 0.0), 1, dtype, "finite networks", bias)
    return Estimates.start(work, samples)


def _arrange(kernel: Tensor, y1: Tensor, y2: Tensor) -> Tensor:
    """From (P1 T1, P2 T2) to (P1, P2, T1, T2), or to (P1, P2) where there are no tokens."""
    if y1.ndim == 2:
        return kernel
    return kernel.view(*y1.shape[:2], *y2.shape[:2]).permute(0, 2, 1, 3)


def _covariance(y1: Tensor, y2: Tensor) -> Tensor:
    product = y1.flatten(0, -2) @ y2.flatten(0, -2).T / y1.shape[-1]
    return _arrange(product, y1, y2)


def _function(module: nn.Module, x: Tensor) -> Callable[[Parameters], Tensor]:
    return lambda parameters: functional_call(module, parameters, (x,))


def _trained(module: nn.Module) -> Parameters:
    return {k: v.detach() for k, v in module.named_parameters() if v.requires_grad}


def ntk_by_jacobian(module: nn.Module, x1: Tensor, x2: Tensor) -> Tensor:
    """J1 J2^T through full Jacobians."""
    parameters = _trained(module)
    with torch.no_grad():
        y1, y2 = module(x1), module(x2)
    j1, j2 = (jacrev(_function(module, x))(parameters) for x in (x1, x2))
    outputs, total = y1.shape[-1], torch.zeros((), dtype=y1.dtype, device=y1.device)
    for name in parameters:
        a = j1[name].reshape(-1, outputs * parameters[name].numel())
        b = j2[name].reshape(-1, outputs * parameters[name].numel())
        total = total + a @ b.T / outputs
    return _arrange(total, y1, y2)


def ntk_by_products(module: nn.Module, x1: Tensor, x2: Tensor) -> Tensor:
    """J1 (J2^T e) for each unit vector e of the outputs of x2."""
    parameters = _trained(module)
    f1 = _function(module, x1)
    y1, pull1 = _vjp(f1, parameters)
    y2, pull2 = _vjp(_function(module, x2), parameters)
    outputs = y1.shape[-1]
    # J v as the transpose of the linear map u -> J^T u: no forward mode is needed.
    _, push1 = _vjp(lambda u: pull1(u)[0], torch.zeros_like(y1))

    def column(unit: Tensor) -> Tensor:
        return push1(pull2(unit)[0])[0]

    units = torch.eye(y2.numel(), dtype=y2.dtype, device=y2.device).view(-1, *y2.shape)
    columns = vmap(column, chunk_size=16)(units).view(-1, outputs, y1.numel() // outputs, outputs)
    return _arrange(columns.diagonal(dim1=1, dim2=3).mean(-1).T, y1, y2)


def _vjp(function: Callable[..., Tensor], at: Any) -> tuple[Tensor, Callable[..., Any]]:
    """torch's vjp without auxiliary outputs, which its type allows for."""
    value, pull, *_ = vjp(function, at)
    return value, pull


CONTRACTIONS: dict[str, Callable[[nn.Module, Tensor, Tensor], Tensor]] = {
    "jacobian": ntk_by_jacobian,
    "products": ntk_by_products,
}
