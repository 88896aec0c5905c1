"""The learner on a GPU: what is stored moves between devices, members draw from their own state."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from algocapture.learners import SGD
from algocapture.models import ModelConfig, Transformer
from algocapture.rng import Seed
from algocapture.tasks import Induction
from algocapture.types import torch_generator

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
TASK = Induction(vocab=16)
CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@dataclass(frozen=True)
class Recurrent(ModelConfig):
    def build(self, spec, generator):
        return _Recurrent(spec.vocab, spec.classes)


class _Recurrent(nn.Module):
    def __init__(self, vocab, classes):
        super().__init__()
        self.embedding = nn.Embedding(vocab, 16)
        self.drop = nn.Dropout(0.5)
        self.lstm = nn.LSTM(16, 16, batch_first=True)
        self.head = nn.Linear(16, classes)

    def forward(self, inputs):
        return self.head(self.lstm(self.drop(self.embedding(inputs)))[0][:, -1])


def batch(k):
    return TASK.sample(12, 32, torch_generator(Seed(0).child(k)))


def losses(learner, steps):
    return np.array([learner.step([batch(k)])[0].loss for k in steps])


@pytest.mark.parametrize("model", [Recurrent(), Transformer(width=32, heads=2)])
def test_a_state_continues_on_either_device(model):
    config = SGD(model, warmup=2)
    start = config.build(TASK, [Seed(0)], CUDA)
    losses(start, range(3))
    state, outer = start.state(), torch.cuda.get_rng_state()
    rest = losses(start, range(3, 6))
    again = config.build(TASK, [Seed(9)], CUDA)
    again.load(state)
    np.testing.assert_allclose(losses(again, range(3, 6)), rest, rtol=1e-5)
    assert torch.equal(torch.cuda.get_rng_state(), outer)
    moved = config.build(TASK, [Seed(9)], CPU)
    moved.load(state)
    for name, value in moved.state().items():
        if not name.startswith("0/generator/"):
            np.testing.assert_array_equal(value, state[name])


@pytest.mark.parametrize("model", [Recurrent(), Transformer(width=32, heads=2)])
def test_flops_are_those_of_the_cpu(model):
    looks = [SGD(model).build(TASK, [Seed(0)], d).predict([batch(0)])[0] for d in (CPU, CUDA)]
    assert looks[0].flops == looks[1].flops > 0


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_outputs_are_those_of_float64_on_the_cpu(precision):
    config = SGD(Transformer(width=64, heads=2), precision=precision)
    learner = config.build(TASK, [Seed(0)], CUDA)
    member, data = learner.population[0], batch(0)
    exact = config.build(TASK, [Seed(0)], CPU).module(0).double()(data.inputs)
    with torch.no_grad(), member._precision():
        got = member.module(data.inputs.cuda()).double().cpu()
    eps = torch.finfo(torch.bfloat16 if precision == "bf16" else torch.float32).eps
    assert (got - exact).abs().max() < 20 * eps * exact.abs().max()
