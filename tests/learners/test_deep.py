"""Forty layers train."""

import math

import pytest
import torch

from algocapture.learners import SGD
from algocapture.models import Transformer
from algocapture.rng import Seed
from algocapture.tasks import ShortestPath
from algocapture.types import torch_generator

TASK = ShortestPath()
SIZE = 10


def batch(device, name, n):
    return TASK.sample(SIZE, n, torch_generator(Seed(0).child(name), device))


def train(config, device, n, steps, every, passes):
    """Errors at looks of 1,000 fresh instances, until one passes."""
    learner, errors = config.build(TASK, [Seed(0)], device), []
    for k in range(1, steps + 1):
        learner.step([batch(device, k, n)])
        if k % every == 0:
            look = batch(device, f"look {k}", 1000)
            (prediction,) = learner.predict([look])
            errors.append(TASK.error(prediction.values, look).mean().item())
            if passes(errors[-1], look):
                break
    return errors


def test_forty_narrow_layers_beat_the_constant_within_200_steps():
    """Passes when the constant is 4 standard errors away; 5 looks at most."""
    model = Transformer(depth=40, width=32, heads=2, causal=False, position="marks", classes=8)

    def passes(error, look):
        return error < TASK.constant_error(look) - 4 * math.sqrt(0.5 / 1000)

    errors = train(SGD(model, lr=2e-3, warmup=20), torch.device("cpu"), 32, 200, 40, passes)
    assert passes(errors[-1], batch(torch.device("cpu"), "constant", 1000)), errors


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_forty_layers_of_width_128_reach_a_fifth(precision):
    model = Transformer(depth=40, width=128, heads=4, causal=False, position="marks", classes=12)
    config = SGD(model, lr=5e-4, warmup=100, precision=precision)
    errors = train(config, torch.device("cuda"), 1024, 2000, 100, lambda error, _: error < 0.2)
    assert errors[-1] < 0.2, errors
