"""Networks trained by gradient flow on half the squared error.

The function trained is f_theta - f_theta0, so that at infinite width each network, not their mean
alone, follows the NTK predictor from 0. Fourth-order Runge-Kutta steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from algocapture.models.population import Parameters, Population

STEP = 0.5  # times the largest rate of decay: an error below 1e-3 a step of what remains


def gradient_flow(
    population: Population,
    start: Parameters,
    x: Float[Tensor, "P ..."],
    targets: Float[Tensor, " P"],
    time: float,
    *,
    fastest: float,
    rate: float = 1.0,
) -> Parameters:
    """Parameters at `time` of theta' = -rate grad of half the squared error.

    `fastest`: the largest rate at which the error decays, in the same time (the largest
    eigenvalue of the NTK, times `rate`).
    """
    if not (math.isfinite(time) and time > 0):
        raise ValueError(f"time = {time!r}: expected a finite number > 0")
    with torch.no_grad():
        goal = population.outputs(start, x) + targets

    def slope(parameters: Parameters) -> Parameters:
        held = {name: value.detach().requires_grad_() for name, value in parameters.items()}
        loss = (population.outputs(held, x) - goal).square().sum() / 2
        gradients = torch.autograd.grad(loss, list(held.values()))
        return {name: -rate * g for name, g in zip(held, gradients, strict=True)}

    steps = math.ceil(time * fastest / STEP)
    now = start
    for _ in range(steps):
        now = _runge_kutta(slope, now, time / steps)
    return now


def _runge_kutta(slope: Callable[[Parameters], Parameters], at: Parameters, h: float) -> Parameters:
    k1 = slope(at)
    k2 = slope(_along(at, k1, h / 2))
    k3 = slope(_along(at, k2, h / 2))
    k4 = slope(_along(at, k3, h))
    return {
        name: value + h / 6 * (k1[name] + 2 * k2[name] + 2 * k3[name] + k4[name])
        for name, value in at.items()
    }


def _along(at: Parameters, direction: Parameters, h: float) -> Parameters:
    return {name: value + h * direction[name] for name, value in at.items()}
