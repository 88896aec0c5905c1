"""Langevin dynamics and gradient flow against what they converge to."""

import math

import pytest
import torch

from algocapture.kernels import InfiniteFullyConnected
from algocapture.learners import KernelPredictor
from algocapture.learners.finite import (
    Problem,
    Schedule,
    gradient_flow,
    langevin,
    size,
    weighted_posterior,
)
from algocapture.models import FullyConnected, Population, SimplifiedTransformer
from algocapture.types import TaskSpec
from tests.learners.finite.test_correction import draws, generator, points, problem

SPEC = TaskSpec(inputs="vectors", output="value", features=3)


def population(depth, width=4, **fields):
    return Population(FullyConnected(depth, width, **fields).build(3, generator()))


def test_langevin_on_a_linear_model_is_ridge_regression():
    """Mean of 4 predictions and their posterior variance, |z| < 4."""
    x, y = points(7), points(3, 1, seed=2)[:, 0]
    held = Problem(InfiniteFullyConnected(1, weight_var=1.5, bias_var=0.2)(x), y, 0.2)
    one = population(1, weight_var=1.5, bias_var=0.2)
    schedule = Schedule(members=400, burn=200, steps=2, every=1)
    run = langevin(one, held, x[:3], x[3:], schedule, generator(1))
    z = (run.predictions.mean(0) - held.mean()) / (run.predictions.std(0) / 20)
    assert float(z.abs().max()) < 4
    cross = held.kernel[3:, :3]
    variance = held.kernel[3:, 3:] - cross @ torch.linalg.solve(held.regularised(), cross.T)
    ratio = run.predictions.var(0) / variance.diagonal()
    assert float(((ratio - 1) / math.sqrt(2 / 399)).abs().max()) < 4
    torch.testing.assert_close(run.conditional, held.mean().expand(400, -1))
    assert 0.4 < run.accepted <= 1


def test_langevin_finds_the_weighted_posterior():
    """A ReLU network of width 4: both readings against weighted prior draws, |z| < 4 of 4."""
    x, held = problem()
    exact = weighted_posterior(held, draws(x, 4, 100_000)).means
    one = population(2, 4, activation="relu", weight_var=2.0, bias_var=0.1)
    run = langevin(one, held, x[:3], x[3:], Schedule(200, 200, 400, 5), generator(1))
    for found in (run.predictions, run.conditional):
        spread = found.var(0) / len(found) + exact.var(0) / len(exact)
        assert float(((found.mean(0) - exact.mean(0)) / spread.sqrt()).abs().max()) < 4
    assert run.conditional.std(0).mean() < run.predictions.std(0).mean()
    # The limit is far away, so that this could fail.
    off = (run.conditional.mean(0) - held.mean()) / (run.conditional.std(0) / math.sqrt(200))
    assert float(off.abs().max()) > 8


def test_flow_of_a_linear_model_is_the_kernels():
    x, y = points(6), points(3, 1, seed=2)[:, 0]
    kernel = InfiniteFullyConnected(1, weight_var=1.5, bias_var=0.2)
    one = population(1, weight_var=1.5, bias_var=0.2)
    fastest = float(torch.linalg.eigvalsh(kernel(x[:3], kind="ntk"))[-1])
    start = one.draw(5, generator(1), x)
    end = gradient_flow(one, start, x[:3], y, 0.7, fastest=fastest)
    moved = one.outputs(end, x[3:]) - one.outputs(start, x[3:])
    expected = KernelPredictor(kernel, "ntk").fit(x[:3].numpy(), y.numpy())
    expected = torch.as_tensor(expected.predict_at(x[3:].numpy(), 0.7))
    torch.testing.assert_close(moved, expected.expand(5, -1), rtol=1e-3, atol=1e-4)
    with pytest.raises(ValueError, match="time = 0"):
        gradient_flow(one, start, x[:3], y, 0, fastest=1.0)


@pytest.mark.slow
def test_flow_approaches_the_ntk_predictor():
    """The mean over initialisations at widths 4 and 32: the deviation falls, many errors."""
    x, y = points(6), points(3, 1, seed=2)[:, 0]
    kernel = InfiniteFullyConnected(2, "relu", 2.0, 0.1)
    expected = KernelPredictor(kernel, "ntk").fit(x[:3].numpy(), y.numpy())
    expected = torch.as_tensor(expected.predict_at(x[3:].numpy(), 2.0))
    fastest = float(torch.linalg.eigvalsh(kernel(x[:3], kind="ntk"))[-1])
    found = []
    for width in (4, 32):
        one = population(2, width, activation="relu", weight_var=2.0, bias_var=0.1)
        start = one.draw(2000, generator(width), x)
        end = gradient_flow(one, start, x[:3], y, 2.0, fastest=fastest)
        moved = one.outputs(end, x[3:]) - one.outputs(start, x[3:])
        found.append(size((moved - expected).view(20, 100, 3).mean(1)))
    assert found[0].value > 5 * found[0].stderr
    assert (found[1].value or 0.0) + 2 * found[1].stderr < found[0].value / 3


def modules():
    fields = {"activation": "gelu", "weight_var": 1.7, "bias_var": 0.2}
    for kind in ("ntk", "mean-field"):
        yield FullyConnected(3, 5, parameterisation=kind, **fields).build(6, generator())
        for readout in ("last", "mean"):
            config = SimplifiedTransformer(
                2, 5, 3, 4, parameterisation=kind, readout=readout, **fields
            )
            yield config.build(SPEC, generator())


@pytest.mark.parametrize("module", list(modules()), ids=lambda m: type(m).__name__)
def test_a_population_is_its_networks(module):
    """Outputs, roots and NTKs of 3 stacked networks are those of each alone."""
    module = module.double()
    x = torch.randn(4, 2, 3, generator=generator(1), dtype=torch.float64)
    held = Population(module)
    stacked = held.draw(3, generator(2), x)
    outputs, roots, tangents = (
        call(stacked, x) for call in (held.outputs, held.roots, held.tangents)
    )
    for i in range(3):
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                parameter.copy_(stacked[name][i])
        torch.testing.assert_close(module(x), outputs[i])
        last = module.weight if hasattr(module, "weight") else module.blocks[-1].weight
        bias = module.bias if hasattr(module, "bias") else module.blocks[-1].bias
        a = torch.cat([last.parameter.flatten(), bias.parameter.flatten()])
        torch.testing.assert_close(roots[i] @ a, outputs[i])
        rows = []
        for value in module(x):
            gradients = torch.autograd.grad(value, list(module.parameters()), retain_graph=True)
            rows.append(torch.cat([g.flatten() for g in gradients]))
        torch.testing.assert_close(torch.stack(rows) @ torch.stack(rows).T, tangents[i])


def test_networks_that_are_no_population_are_refused():
    with pytest.raises(ValueError, match="Linear has parameters that are not N"):
        Population(torch.nn.Linear(2, 1))
    for fields in ({"parameterisation": "standard"}, {"layernorm_affine": True}):
        with pytest.raises(ValueError, match="SimplifiedModule has parameters that are not N"):
            Population(SimplifiedTransformer(1, 4, 2, 3, **fields).build(SPEC, generator()))
    several = SimplifiedTransformer(1, 4, 2, 3, outputs=2, readout="last").build(SPEC, generator())
    x = points(2)[:, None, :].float()
    with pytest.raises(ValueError, match="one an input is needed"):
        Population(several).outputs(Population(several).draw(2, generator(), x), x)
    with pytest.raises(ValueError, match="activation"):
        FullyConnected(activation="step")
