"""The SGD learner: exact continuation, members apart, splits that change nothing."""

import copy
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import nn

from algocapture import config as configuration
from algocapture.config import from_json, register, to_json
from algocapture.learners import SGD
from algocapture.learners.losses import answers, total_loss
from algocapture.models import ModelConfig, Transformer
from algocapture.rng import Seed
from algocapture.tasks.base import Task
from algocapture.types import Batch, TaskSpec, torch_generator

CPU = torch.device("cpu")


@dataclass(frozen=True)
class LastToken(Task):
    """Say the last token."""

    def sample(self, size, n, generator):
        inputs = torch.randint(5, (n, size), generator=generator)
        return Batch(inputs, self.solve(inputs), torch.ones(n, dtype=torch.bool), size)

    def solve(self, inputs):
        return inputs[:, -1]

    @property
    def spec(self):
        return TaskSpec(inputs="tokens", output="class", vocab=5, classes=5)


@dataclass(frozen=True)
class Counting(Task):
    """The number of points in the upper half plane; `ragged` masks some targets at random."""

    ragged: bool = False

    def sample(self, size, n, generator):
        inputs = torch.randn(n, size, 2, generator=generator)
        mask = torch.ones(n, dtype=torch.bool)
        if self.ragged:
            mask = torch.rand(n, generator=generator) < 0.5
        return Batch(inputs, self.solve(inputs), mask, size)

    def solve(self, inputs):
        return (inputs[..., 1] > 0).sum(1).float()

    @property
    def spec(self):
        return TaskSpec(inputs="vectors", output="value", features=2, readout="mean", marks=(0, -1))


@dataclass(frozen=True)
class Dropping(ModelConfig):
    """A user's module: drawn without a generator, draws always, keeps running statistics."""

    def build(self, spec, generator):
        return _Dropping()


class _Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(2, 8), nn.Linear(8, 1)
        self.norm, self.drop = nn.BatchNorm1d(8), nn.Dropout(0.3)

    def forward(self, inputs):
        x = self.drop(self.norm(self.first(inputs).relu().mean(1)))
        return self.second(x + 0.1 * torch.rand(8)).squeeze(-1)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """These classes are known by name here, and nowhere else."""
    monkeypatch.setattr(configuration, "_registered", dict(configuration._registered))
    for kind in (LastToken, Counting, Dropping):
        register(kind)


SMALL = Transformer(depth=1, width=8, heads=2)
POINTS = replace(SMALL, causal=False, position="marks")
SETTINGS = {
    "adamw": (SGD(SMALL, warmup=5, weight_decay=0.1), LastToken()),
    "momentum": (SGD(SMALL, optimiser="sgd", momentum=0.9, lr=0.1, clip=0.2), LastToken()),
    "plain sgd": (SGD(POINTS, optimiser="sgd", lr=0.01, clip=None), Counting()),
    "smooth loss": (SGD(POINTS, value_loss="smooth"), Counting(ragged=True)),
    "classes of values": (SGD(replace(POINTS, classes=6)), Counting()),
    "bf16": (SGD(SMALL, precision="bf16"), LastToken()),
    "dropout": (SGD(Dropping()), Counting()),
}
settings = pytest.mark.parametrize(("config", "task"), SETTINGS.values(), ids=SETTINGS.keys())


def batch(task, name, n=12, size=6):
    return task.sample(size, n, torch_generator(Seed(0).child("data", name)))


def trained(config, task, seeds, steps, learner=None):
    learner = learner or config.build(task, seeds, CPU)
    for k in steps:
        learner.step([batch(task, 100 * s.root + k) for s in seeds])
    return learner


def assert_same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)
        assert a[name].dtype == b[name].dtype, name


@settings
def test_continuation_is_bit_for_bit(config, task):
    seeds, look = [Seed(0), Seed(1)], batch(task, "look")
    whole = trained(config, task, seeds, range(7))
    halted = trained(config, task, seeds, range(4))
    torch.rand(3)  # what others draw from the global generator changes nothing
    halted.predict([batch(task, "look")] * 2)
    fresh = config.build(task, [Seed(8), Seed(9)], CPU)
    fresh.load(copy.deepcopy(halted.state()))
    continued = trained(config, task, seeds, range(4, 7), fresh)
    assert_same(continued.state(), whole.state())
    for a, b in zip(continued.predict([look] * 2), whole.predict([look] * 2), strict=True):
        assert torch.equal(a.values, b.values)


@settings
def test_members_are_as_if_alone_and_waiting_changes_nothing(config, task):
    seeds = [Seed(0), Seed(1), Seed(2)]
    together = config.build(task, seeds, CPU)
    for k in range(6):
        active = [batch(task, 100 * s.root + k) for s in seeds]
        if k >= 4:
            active[1] = None
        steps = together.step(active)
        assert [step is None for step in steps] == [b is None for b in active]
    state = together.state()
    for i, seed in enumerate(seeds):
        alone = trained(config, task, [seed], range(4 if i == 1 else 6)).state()
        own = {k.removeprefix(f"{i}/"): v for k, v in state.items() if k.startswith(f"{i}/")}
        assert_same(own, {k.removeprefix("0/"): v for k, v in alone.items()})


@settings
def test_prediction_changes_nothing(config, task):
    outer = torch.get_rng_state()
    learner = trained(config, task, [Seed(3)], range(3))
    before = learner.state()
    look = batch(task, "look")
    (first,), (second,) = learner.predict([look]), learner.predict([look])
    assert torch.equal(first.values, second.values)
    assert first.values.shape == look.targets.shape
    assert first.values.dtype == look.targets.dtype
    assert_same(learner.state(), before)
    assert torch.equal(torch.get_rng_state(), outer)


@settings
def test_state_is_plain_arrays(config, task):
    for name, array in trained(config, task, [Seed(0)], range(2)).state().items():
        assert isinstance(name, str)
        assert isinstance(array, np.ndarray)
        assert array.dtype.kind in "fiub", name
        if name.startswith("0/model") and array.dtype.kind == "f":
            assert array.dtype == np.float32


@pytest.mark.parametrize("task", [LastToken(), Counting(ragged=True)])
def test_micro_batches_give_the_gradient_of_the_whole(task):
    model = SMALL if isinstance(task, LastToken) else POINTS
    gradients = []
    for micro_tokens in (10_000, 18, 1):  # 12 instances of 6: at once, by three, one by one
        learner = SGD(model, clip=None, micro_tokens=micro_tokens).build(task, [Seed(0)], CPU)
        (step,) = learner.step([batch(task, "first")])
        gradients.append(
            [p.grad for p in learner.module(0).parameters()] + [torch.tensor(step.loss)]
        )
    for split in gradients[1:]:
        for whole, part in zip(gradients[0], split, strict=True):
            torch.testing.assert_close(part, whole, rtol=2e-5, atol=1e-7)  # float32 sums reordered


def test_the_loss_is_the_mean_over_masked_targets():
    task = Counting(ragged=True)
    data = batch(task, "first")
    learner = SGD(POINTS).build(task, [Seed(0)], CPU)
    outputs = learner.module(0)(data.inputs)
    expected = (outputs - data.targets)[data.mask].square().mean().item()
    (step,) = learner.step([data])
    assert step.loss == pytest.approx(expected, rel=1e-5)


def test_classes_of_values_learn_log_likelihood_and_the_last_means_or_more():
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    targets = torch.tensor([0.0, 2.0, 7.0, 1.0])
    data = Batch(torch.zeros(4, 1, 2), targets, torch.tensor([True, True, True, False]), 1)
    picked = logits.log_softmax(-1)[[0, 1, 2], [0, 2, 2]]
    torch.testing.assert_close(total_loss(logits, data, "squared"), -picked.sum())
    assert torch.equal(answers(logits, targets), logits.argmax(-1).float())


def test_a_module_that_has_diverged_is_never_right():
    """torch's argmax of NaNs is class 0: a module of NaNs would be right wherever that is."""
    logits = torch.tensor([[0.0, 1.0], [torch.nan, 1.0], [1.0, torch.nan], [torch.inf, 0.0]])
    assert logits.argmax(-1).tolist() == [1, 0, 1, 0]
    for dtype in (torch.long, torch.float32):
        given = answers(logits, torch.zeros(4, dtype=dtype))
        for truth in (0, 1):
            data = Batch(torch.zeros(4, 1), torch.full((4,), truth, dtype=dtype),
                         torch.ones(4, dtype=torch.bool), 1)  # fmt: skip
            assert LastToken().error(given, data).tolist() == [1.0 - truth, 1.0, 1.0, truth]


def test_ties_go_to_the_first_class():
    logits = torch.randint(0, 3, (500, 40), generator=torch_generator(Seed(1))).float()
    assert torch.equal(answers(logits, torch.zeros(500).long()), logits.argmax(-1))


@pytest.mark.parametrize("shape", [(4, 1), (4, 2, 3), (3,), ()])
def test_outputs_of_a_wrong_shape_are_refused(shape):
    with pytest.raises(ValueError, match="outputs have shape"):
        answers(torch.zeros(shape), torch.zeros(4))


def test_warm_up_counts_steps_over_all_stages_and_survives_a_restart():
    config = SGD(SMALL, warmup=4, lr=0.5)
    assert [config.learning_rate(k) for k in range(6)] == [0.125, 0.25, 0.375, 0.5, 0.5, 0.5]
    task = LastToken()
    learner = trained(config, task, [Seed(0)], range(3))
    fresh = config.build(task, [Seed(0)], CPU)
    fresh.load(learner.state())
    fresh.step([batch(task, 3)])
    assert fresh.population[0].steps == 4
    whole = trained(config, task, [Seed(0)], range(4))
    assert_same(fresh.state(), whole.state())


def test_plain_sgd_takes_the_step_of_the_textbook():
    task = LastToken()
    learner = SGD(SMALL, optimiser="sgd", lr=0.1, warmup=0, clip=0.01).build(task, [Seed(0)], CPU)
    module = learner.module(0)
    data = batch(task, "first")
    before = [p.detach().clone() for p in module.parameters()]
    loss = nn.functional.cross_entropy(module(data.inputs), data.targets)
    gradients = torch.autograd.grad(loss, list(module.parameters()))
    norm = torch.cat([g.flatten() for g in gradients]).norm()
    assert norm > 0.01
    learner.step([data])
    for old, gradient, new in zip(before, gradients, module.parameters(), strict=True):
        torch.testing.assert_close(new, old - 0.1 * gradient * 0.01 / norm, rtol=1e-4, atol=1e-7)


def test_flops_are_charged_by_length_and_number():
    task = LastToken()
    learner = SGD(SMALL).build(task, [Seed(0)], CPU)
    (step,) = learner.step([batch(task, "a", n=7, size=9)])
    (look,) = learner.predict([batch(task, "a", n=5, size=4)])
    assert step.flops == 3 * 7 * SMALL.flops(task.spec, 9)
    assert look.flops == 5 * SMALL.flops(task.spec, 4)


def test_modules_that_do_not_say_are_counted():
    learner = SGD(Dropping()).build(Counting(), [Seed(0)], CPU)
    (look,) = learner.predict([batch(Counting(), "a", n=5, size=6)])
    assert look.flops == 5 * (2 * 6 * 2 * 8 + 2 * 8 * 1)


def test_it_learns():
    task = LastToken()
    learner = SGD(SMALL, lr=1e-2, warmup=10).build(task, [Seed(0)], CPU)
    for k in range(150):
        learner.step([batch(task, k, n=32)])
    look = batch(task, "look", n=500)
    (prediction,) = learner.predict([look])
    assert task.error(prediction.values, look).mean() < 0.05


def test_state_of_another_model_is_refused():
    task = LastToken()
    state = SGD(SMALL).build(task, [Seed(0)], CPU).state()
    for other, words in [
        (replace(SMALL, depth=2), "another learner"),
        (replace(SMALL, width=16), "of shape"),
    ]:
        with pytest.raises(ValueError, match=words):
            SGD(other).build(task, [Seed(0)], CPU).load(state)
    with pytest.raises(ValueError, match="member '1'"):
        SGD(SMALL).build(task, [Seed(0)], CPU).load({"1" + k[1:]: v for k, v in state.items()})


def test_one_member_can_be_given_back_alone():
    task, seeds = LastToken(), [Seed(0), Seed(1)]
    learner = trained(SGD(SMALL), task, seeds, range(2))
    early = {k: v for k, v in learner.state().items() if k.startswith("1/")}
    late = trained(SGD(SMALL), task, seeds, range(2, 4), learner).state()
    learner.load(early)
    assert_same(learner.state(), {k: early.get(k, v) for k, v in late.items()})


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"model": "gpt"}, "model"),
        ({"optimiser": "lion"}, "optimiser"),
        ({"lr": 0.0}, "lr"),
        ({"lr": float("nan")}, "lr"),
        ({"weight_decay": -1.0}, "weight_decay"),
        ({"betas": (0.9, 1.0)}, "betas"),
        ({"momentum": -0.1}, "momentum"),
        ({"warmup": -1}, "warmup"),
        ({"clip": 0.0}, "clip"),
        ({"value_loss": "absolute"}, "value_loss"),
        ({"precision": "tf32"}, "precision"),
        ({"micro_tokens": 0}, "micro_tokens"),
        ({"compile": "yes"}, "compile"),
    ],
)
def test_bad_fields_are_named(fields, named):
    with pytest.raises(ValueError, match=named):
        SGD(**({"model": SMALL} | fields))


def test_the_configuration_survives_json():
    config = SGD(SMALL, betas=(0.8, 0.9), clip=None)
    assert from_json(to_json(config)) == config
