"""Gaussian expectations of an activation: the duals that carry covariances through a layer.

For (u, v) ~ N(0, [[q1, c], [c, q2]]) a dual gives E[f(u)f(v)], its derivative dual E[f'(u)f'(v)],
and the gain dual E[f'(u)f'(v) u v] (the NTK of a trained gain in front of the activation).
ReLU, erf, exact GELU and the identity have closed forms; any other activation of linear growth
goes through Gauss-Hermite quadrature. Equations: docs/theory/kernels.md.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

Map = Callable[[Tensor], Tensor]
Expectation = Callable[[Tensor, Tensor, Tensor], Tensor]  # of (c, q1, q2)
NODES = 64  # Gauss-Hermite nodes a dimension: 1e-6 relative for tanh at variance 2


@dataclass(frozen=True)
class Activation:
    """An activation and its three duals as functions of (c, q1, q2)."""

    map: Map
    dual: Expectation
    derivative: Expectation
    gain: Expectation
    shared: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]] | None = None

    def both(self, c: Tensor, q1: Tensor, q2: Tensor) -> tuple[Tensor, Tensor]:
        """The dual and the derivative dual, which may share their work."""
        if self.shared is not None:
            return self.shared(c, q1, q2)
        return self.dual(c, q1, q2), self.derivative(c, q1, q2)


def _sqrt(q: Tensor) -> Tensor:
    """Square root with the finite gradient 0 at 0."""
    positive = q > 0
    # A safe argument, not a masked result: where() passes NaN gradients of its dead branch.
    return torch.where(positive, torch.where(positive, q, torch.ones_like(q)).sqrt(), 0 * q)


def _inverse_sqrt(q: Tensor) -> Tensor:
    """1 / sqrt(q), and 0 at 0."""
    positive = q > 0
    return torch.where(positive, torch.where(positive, q, torch.ones_like(q)).rsqrt(), 0 * q)


def correlation(c: Tensor, q1: Tensor, q2: Tensor) -> Tensor:
    """c / sqrt(q1 q2) in [-1, 1]; 0 where a variance is 0. Its gradient is never NaN.

    Near 1 an angle is the square root of the rounding: 1 - 1e-16 would cost 1e-8, and a Gram its
    positive semi-definiteness. So the last few roundings below 1 are 1.
    """
    edge = 1 + 8 * torch.finfo(c.dtype).eps
    # Variances often broadcast: the roots are of their size, and c is passed over three times.
    return (c * (_inverse_sqrt(q1) * edge) * _inverse_sqrt(q2)).clamp(-1, 1)


def _sine_angle(cosine: Tensor) -> tuple[Tensor, Tensor]:
    """sin and angle of a cosine in [-1, 1], with finite gradients (0) at its ends."""
    if not cosine.requires_grad:
        # The angle of this very sine: the dual is of third order in both, and errors cancel.
        sine = torch.addcmul(cosine.new_ones(()), cosine, cosine, value=-1).sqrt_()
        return sine, torch.atan2(sine, cosine)
    inside = cosine.abs() < 1
    safe = torch.where(inside, cosine, torch.zeros_like(cosine))
    sine = torch.where(inside, ((1 - safe) * (1 + safe)).sqrt(), torch.zeros_like(cosine))
    end = torch.where(cosine > 0, torch.zeros_like(cosine), torch.full_like(cosine, math.pi))
    return sine, torch.where(inside, torch.arccos(safe), end)


def _relu_both(c: Tensor, q1: Tensor, q2: Tensor) -> tuple[Tensor, Tensor]:
    cosine = correlation(c, q1, q2)
    sine, angle = _sine_angle(cosine)
    slope = torch.rsub(angle, 0.5, alpha=0.5 / math.pi)
    part = torch.addcmul(sine, cosine, slope, value=2 * math.pi)
    return part * (_sqrt(q1) / (2 * math.pi)) * _sqrt(q2), slope


def _relu(c: Tensor, q1: Tensor, q2: Tensor) -> Tensor:
    return _relu_both(c, q1, q2)[0]


def _relu_derivative(c: Tensor, q1: Tensor, q2: Tensor) -> Tensor:
    return _relu_both(c, q1, q2)[1]


def _determinant(c: Tensor, q1: Tensor, q2: Tensor) -> Tensor:
    """det(I + K) >= 1, clipped there against a c beyond Cauchy-Schwarz by rounding."""
    return (1 + q1 + q2 + (q1 * q2 - c * c).clamp(min=0)).clamp(min=1)


def _erf(c: Tensor, q1: Tensor, q2: Tensor) -> Tensor:
    return (2 / math.pi) * torch.arcsin(correlation(2 * c, 1 + 2 * q1, 1 + 2 * q2))


def _erf_derivative(c: Tensor, q1: Tensor, q2: Tensor) -> Tensor:
    return (4 / math.pi) * _determinant(2 * c, 2 * q1, 2 * q2).rsqrt()


def _erf_gain(c: Tensor, q1: Tensor, q2: Tensor) -> Tensor:
    return (4 / math.pi) * c * _determinant(2 * c, 2 * q1, 2 * q2) ** -1.5


def _normal_cdfs(c: Tensor, q1: Tensor, q2: Tensor) -> Tensor:
    """E[Phi(u) Phi(v)], Phi the normal distribution function."""
    return 0.25 + torch.arcsin(correlation(c, 1 + q1, 1 + q2)) / (2 * math.pi)


def _gelu(c: Tensor, q1: Tensor, q2: Tensor) -> Tensor:
    # Stein's identity twice on E[u v Phi(u) Phi(v)].
    density = _determinant(c, q1, q2).rsqrt() / (2 * math.pi)  # E[n(u) n(v)]
    rest = q1 * q2 + c * c * (1 / (1 + q1) + 1 / (1 + q2) - 1)
    return c * _normal_cdfs(c, q1, q2) + density * rest


def _gelu_derivative(c: Tensor, q1: Tensor, q2: Tensor) -> Tensor:
    det = _determinant(c, q1, q2)
    density = det.rsqrt() / (2 * math.pi)
    mixed = c * density * (1 / (1 + q1) + 1 / (1 + q2) + 1 / det)
    return _normal_cdfs(c, q1, q2) + mixed


def _gelu_gain(c: Tensor, q1: Tensor, q2: Tensor) -> Tensor:
    det = _determinant(c, q1, q2)
    density = det.rsqrt() / (2 * math.pi)
    # Covariance of (u, v) under the law tilted by n(u) n(v): K (I + K)^-1.
    s11, s22 = (q1 * (1 + q2) - c * c) / det, (q2 * (1 + q1) - c * c) / det
    s12 = c / det

    def one_sided(p1: Tensor, p2: Tensor, s: Tensor) -> Tensor:  # E[u^2 v n(u) Phi(v)]
        first = c * density / (1 + p1)  # E[u n(u) Phi(v)]
        third = (2 * p1 * first + c * density * s) / (1 + p1)  # E[u^3 n(u) Phi(v)]
        return c * (2 * first - third) + p2 * density * s

    both = density * (s11 * s22 + 2 * s12 * s12)
    return _gelu(c, q1, q2) + one_sided(q1, q2, s11) + one_sided(q2, q1, s22) + both


def _identity(c: Tensor, q1: Tensor, q2: Tensor) -> Tensor:
    return c + 0 * (q1 + q2)  # the shape of all three


def _one(c: Tensor, q1: Tensor, q2: Tensor) -> Tensor:
    return torch.ones_like(c + q1 + q2)


def quadrature(left: Map, nodes: int = NODES) -> Expectation:
    """E[f(u) f(v)] by Gauss-Hermite quadrature: exact enough for a smooth f of linear growth."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights = weights / weights.sum()

    def expectation(c: Tensor, q1: Tensor, q2: Tensor) -> Tensor:
        c, q1, q2 = torch.broadcast_tensors(c, q1, q2)
        cosine = correlation(c, q1, q2)
        sine, _ = _sine_angle(cosine)
        x = torch.as_tensor(points, dtype=c.dtype, device=c.device)
        w = torch.as_tensor(weights, dtype=c.dtype, device=c.device)
        total = torch.zeros_like(c)
        # A loop over one dimension bounds the memory at `nodes` times that of c.
        for point, weight in zip(points.tolist(), weights.tolist(), strict=True):
            v = _sqrt(q2)[..., None] * (cosine[..., None] * point + sine[..., None] * x)
            total = total + weight * left(_sqrt(q1) * point) * (left(v) @ w)
        return total

    return expectation


def from_function(function: Map, nodes: int = NODES) -> Activation:
    """The duals of any elementwise function by quadrature, its derivative by automatic means."""

    def slope(u: Tensor) -> Tensor:
        return torch.func.grad(lambda v: function(v).sum())(u)

    return Activation(
        function,
        quadrature(function, nodes),
        quadrature(slope, nodes),
        quadrature(lambda u: slope(u) * u, nodes),
    )


_table: dict[str, Activation] = {
    # relu'(u) u = relu(u)
    "relu": Activation(torch.relu, _relu, _relu_derivative, _relu, _relu_both),
    "erf": Activation(torch.erf, _erf, _erf_derivative, _erf_gain),
    "gelu": Activation(torch.nn.functional.gelu, _gelu, _gelu_derivative, _gelu_gain),
    "identity": Activation(lambda u: u, _identity, _one, _identity),
    "tanh": from_function(torch.tanh),
    "silu": from_function(torch.nn.functional.silu),
    "softplus": from_function(torch.nn.functional.softplus),
}


def add_activation(name: str, function: Map, nodes: int = NODES) -> None:
    """Give a smooth elementwise function of linear growth a name that kernels accept."""
    if name in _table:
        raise ValueError(f"activation {name!r} exists: choose another name")
    _table[name] = from_function(function, nodes)


def activation(name: str) -> Activation:
    """The activation of that name."""
    if name not in _table:
        close = difflib.get_close_matches(str(name), _table, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(
            f"unknown activation {name!r}, known: {', '.join(_table)}{meant} "
            "(add one with algocapture.kernels.duals.add_activation)"
        )
    return _table[name]
