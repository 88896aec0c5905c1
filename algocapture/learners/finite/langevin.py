"""Networks trained by Langevin dynamics with weight decay, to the posterior of their weights.

    d theta = -(theta + grad Phi) dt + sqrt(2) dB,   Phi = sum (f_theta(x) - y)^2 / (2 ridge)

has the posterior under N(0, 1) weights for its stationary law. A step is semi-implicit (the
weight decay is taken at the midpoint), so that its size need not shrink with the number of
weights, and is accepted by Metropolis' rule, which takes out the step's error (Cotter, Roberts,
Stuart, White 2013, Eq. 4.10 with C = I). All networks run side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from algocapture.learners.finite.correction import Problem
from algocapture.learners.finite.posterior import conditional
from algocapture.models.population import Parameters, Population

ACCEPTED = 0.7  # share of proposals that the step is tuned to while burning in
LARGEST = 1.9  # the scheme needs a step below 2
TUNE = 20  # steps between two adjustments


@dataclass(frozen=True)
class Langevin:
    """What each network predicted on average, after burning in."""

    predictions: Float[Tensor, "members S"]  # of the networks as they were
    halves: Float[Tensor, "2 members S"]  # the same with the last map's weights averaged exactly
    accepted: float
    step: float

    @property
    def conditional(self) -> Float[Tensor, "members S"]:
        return self.halves.mean(0)

    @property
    def drift(self) -> float:
        """Root mean square z-score of the later half against the earlier: about 1 at rest."""
        change = self.halves[1] - self.halves[0]
        z = change.mean(0) / (change.std(0) / len(change) ** 0.5)
        return float(z.square().mean().sqrt())


@dataclass(frozen=True)
class Schedule:
    """Steps before and after which predictions count; `every` so many of the latter are read."""

    members: int = 256
    burn: int = 400
    steps: int = 1600
    every: int = 10

    def __post_init__(self) -> None:
        if self.members < 2 or self.burn < 0 or not 1 <= self.every <= self.steps // 2:
            raise ValueError(f"{self}: 2 members or more, and 1 <= every <= steps / 2")


def langevin(
    population: Population,
    problem: Problem,
    x: Float[Tensor, "P ..."],
    tests: Float[Tensor, "S ..."],
    schedule: Schedule,
    generator: torch.Generator,
) -> Langevin:
    """Run from fresh initialisations."""
    dynamics = _Dynamics(population, problem, x, generator)
    state = dynamics.start(population.draw(schedule.members, generator, x))
    step, accepted = 0.1, torch.zeros((), dtype=x.dtype, device=x.device)
    for i in range(schedule.burn):
        state, taken = dynamics.step(state, step)
        accepted += taken
        if (i + 1) % TUNE == 0:
            step = min(
                LARGEST, step * 1.5 ** ((float(accepted) / TUNE - ACCEPTED) / (1 - ACCEPTED))
            )
            accepted.zero_()
    plain = x.new_zeros(schedule.members, len(tests))
    halves, counts = x.new_zeros(2, *plain.shape), [0, 0]
    both, accepted = torch.cat([x, tests]), torch.zeros_like(accepted)
    for i in range(schedule.steps):
        state, taken = dynamics.step(state, step)
        accepted += taken
        if (i + 1) % schedule.every == 0:
            half = int(2 * i >= schedule.steps)
            with torch.no_grad():
                plain += population.outputs(state.parameters, tests)
                kernels = population.kernels(state.parameters, both)
            halves[half] += conditional(problem, kernels)[1]
            counts[half] += 1
    halves = halves / torch.tensor(counts).to(x)[:, None, None]
    return Langevin(plain / sum(counts), halves, float(accepted) / schedule.steps, step)


@dataclass(frozen=True)
class _State:
    parameters: Parameters
    potential: Float[Tensor, " members"]
    gradient: Parameters


class _Dynamics:
    def __init__(
        self, population: Population, problem: Problem, x: Tensor, generator: torch.Generator
    ) -> None:
        self.population, self.problem, self.x, self.generator = population, problem, x, generator

    def start(self, parameters: Parameters) -> _State:
        held = {name: value.detach().requires_grad_() for name, value in parameters.items()}
        misses = self.population.outputs(held, self.x) - self.problem.targets
        potential = misses.square().sum(1) / (2 * self.problem.ridge)
        gradients = torch.autograd.grad(potential.sum(), list(held.values()))
        detached = {name: value.detach() for name, value in held.items()}
        return _State(detached, potential.detach(), dict(zip(held, gradients, strict=True)))

    def step(self, state: _State, step: float) -> tuple[_State, Tensor]:
        """The next state and the share of members that moved."""
        noise = self.population.draw(len(state.potential), self.generator, self.x)
        a, b, c = (2 - step) / (2 + step), 2 * step / (2 + step), (8 * step) ** 0.5 / (2 + step)
        moved = self.start(
            {k: a * v - b * state.gradient[k] + c * noise[k] for k, v in state.parameters.items()}
        )
        gain = _rho(state, moved, step) - _rho(moved, state, step)
        draws = torch.rand(
            gain.shape, generator=self.generator, dtype=gain.dtype, device=gain.device
        )
        yes = draws.log() < gain
        chosen = _State(
            _where(yes, moved.parameters, state.parameters),
            torch.where(yes, moved.potential, state.potential),
            _where(yes, moved.gradient, state.gradient),
        )
        return chosen, yes.to(self.x).mean()


def _rho(here: _State, there: _State, step: float) -> Tensor:
    total = here.potential
    for name, u in here.parameters.items():
        v, g = there.parameters[name], here.gradient[name]
        parts = (v - u) / 2 + step / 4 * (u + v) + step / 4 * g
        total = total + (parts * g).reshape(len(g), -1).sum(1)
    return total


def _where(yes: Tensor, new: Parameters, old: Parameters) -> Parameters:
    return {
        name: torch.where(yes.view(-1, *[1] * (value.ndim - 1)), new[name], value)
        for name, value in old.items()
    }
