"""The stacked population is, up to rounding, the loop over its members."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from algocapture.learners import SGD, Stacked
from algocapture.models import SimplifiedTransformer, Transformer
from algocapture.rng import Seed
from algocapture.tasks import GrammarRecognition, Induction, ShortestPath, Sorting, Task
from algocapture.types import Batch, torch_generator

CPU = torch.device("cpu")
SEEDS = [Seed(0).child("member", m) for m in range(3)]
SMALL = SGD(
    model=Transformer(depth=2, width=16, heads=2, mlp=24),
    lr=3e-3,
    warmup=3,
    clip=0.5,
    weight_decay=0.1,
)
POINTS = replace(SMALL, model=replace(SMALL.model, position="marks", causal=False))
CASES = [
    (Induction(vocab=8), SMALL),
    (Sorting(vocab=8), SMALL),
    (GrammarRecognition(), replace(SMALL, model=replace(SMALL.model, causal=False))),
    (ShortestPath(), POINTS),
    (ShortestPath(), replace(POINTS, model=replace(POINTS.model, classes=6, readout="mean"))),
    (Induction(vocab=8), replace(SMALL, micro_tokens=60, clip=None)),
]


def batches(task: Task, size: int, step: int, n: int = 10) -> list[Batch]:
    return [task.sample(size, n, torch_generator(seed.child("batch", step))) for seed in SEEDS]


@pytest.mark.parametrize(("task", "config"), CASES)
def test_members_train_and_answer_as_when_alone(task: Task, config: SGD) -> None:
    """float64 would agree to 1e-12; in float32 Adam's division amplifies rounding of small
    gradients, so the weights are compared with what they moved (lr = 3e-3 a step)."""
    stacked, loop = (c.build(task, SEEDS, CPU) for c in (Stacked(training=config), config))
    for step in range(6):
        given = batches(task, 12, step)
        if step == 3:
            given[1] = None  # waits
        ours, theirs = stacked.step(given), loop.step(given)
        for a, b in zip(ours, theirs, strict=True):
            assert (a is None) == (b is None)
            if a is not None and b is not None:
                assert a.loss == pytest.approx(b.loss, rel=2e-3, abs=1e-5)
                assert a.flops == b.flops
    one, other = stacked.state(), loop.state()
    assert set(one) == {key for key in other if "generator" not in key}
    for key, value in one.items():
        assert value.shape == other[key].shape
        if "/model/" in key:
            np.testing.assert_allclose(value, other[key], atol=2e-4, rtol=0)
    given = batches(task, 17, 99, n=40)
    given[0] = None
    for a, b in zip(stacked.predict(given), loop.predict(given), strict=True):
        assert (a is None) == (b is None)
        if a is None or b is None:
            continue
        assert a.flops == b.flops
        if a.values.is_floating_point():
            assert (a.values - b.values).abs().max() < 1e-2
        else:
            assert (a.values != b.values).double().mean() < 0.02


def test_one_step_in_float64_agrees_to_rounding() -> None:
    """Weights, gradients and AdamW are the same function: 1e-9 after three steps."""
    task = Induction(vocab=8)
    stacked, loop = (c.build(task, SEEDS, CPU) for c in (Stacked(training=SMALL), SMALL))
    for name in ("decayed", "control"):
        setattr(stacked, name, getattr(stacked, name).double())
    stacked.rows = stacked.rows.detach().double().requires_grad_()
    stacked.slots = {key: slot.double() for key, slot in stacked.slots.items()}
    for member in loop.population:
        member.module.double()
        for slot in member.optimiser.slots.values():
            slot.update({name: tensor.double() for name, tensor in slot.items()})
    for step in range(3):
        given = batches(task, 12, step)
        stacked.step(given)
        loop.step(given)
    other = loop.state()
    for key, value in stacked.state().items():
        np.testing.assert_allclose(value, other[key], atol=1e-9, rtol=1e-7, err_msg=key)


def test_a_member_that_waits_does_not_change() -> None:
    task = Induction(vocab=8)
    learner = Stacked(training=SMALL).build(task, SEEDS, CPU)
    learner.step(batches(task, 8, 0))
    before = learner.state()
    given = batches(task, 8, 1)
    given[2] = None
    learner.step(given)
    after = learner.state()
    for key in before:
        same = np.array_equal(before[key], after[key])
        assert same == key.startswith("2/"), key


def test_continues_bit_for_bit_and_a_part_loads_alone() -> None:
    task = Induction(vocab=8)
    one, other = (Stacked(training=SMALL).build(task, SEEDS, CPU) for _ in range(2))
    one.step(batches(task, 8, 0))
    other.load(one.state())
    for learner in (one, other):
        learner.step(batches(task, 8, 1))
    assert all(np.array_equal(v, other.state()[k]) for k, v in one.state().items())
    held = other.state()
    other.step(batches(task, 8, 2))
    other.load({k: v for k, v in held.items() if k.startswith("1/")})
    now = other.state()
    assert np.array_equal(now["1/model/head"], held["1/model/head"])
    assert not np.array_equal(now["0/model/head"], held["0/model/head"])


def test_weights_are_aligned_for_every_member() -> None:
    """Nine classes: a head and bias of odd sizes, which would misalign all rows but the first."""
    learner = Stacked(training=SMALL).build(Sorting(vocab=8), SEEDS, CPU)
    for name, weights in learner.layout.split(learner.rows.detach()).items():
        for weight in weights:
            assert weight.storage_offset() % 64 == 0, name


def test_only_transformers_by_adamw() -> None:
    for training in (SGD(model=SimplifiedTransformer()), replace(SMALL, optimiser="sgd")):
        with pytest.raises(ValueError, match="training must be of a Transformer by 'adamw', got"):
            Stacked(training=training)


@pytest.mark.slow  # compiling takes half a minute
@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # its own
@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
@pytest.mark.parametrize(("task", "config"), [CASES[0], CASES[4]])
def test_compiled_steps_are_the_eager_ones_at_every_length(task: Task, config: SGD) -> None:
    eager, compiled = (
        Stacked(training=replace(config, compile=on)).build(task, SEEDS, CPU)
        for on in (False, True)
    )
    for step, size in enumerate((12, 12, 13, 40, 11)):
        given = batches(task, size, step)
        for a, b in zip(eager.step(given), compiled.step(given), strict=True):
            assert a is not None
            assert b is not None
            assert a.loss == pytest.approx(b.loss, rel=1e-3, abs=1e-5)
    other = eager.state()
    for key, value in compiled.state().items():
        if "/model/" in key:
            np.testing.assert_allclose(value, other[key], atol=2e-4, rtol=0)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_captured_steps_are_the_eager_ones(precision: str) -> None:
    """30 steps of one shape on the GPU, captured from the 13th on, beside the loop."""
    task, device = Induction(vocab=16), torch.device("cuda")
    config = replace(SMALL, precision=precision, lr=1e-3)
    stacked, loop = (c.build(task, SEEDS, device) for c in (Stacked(training=config), config))
    for step in range(30):
        given = [batch.to(device) for batch in batches(task, 12, step, n=64)]
        ours, theirs = stacked.step(given), loop.step(given)
    assert stacked.graphs
    atol = 2e-3 if precision == "float32" else 1e-2
    other = loop.state()
    for key, value in stacked.state().items():
        if "/model/" in key:
            np.testing.assert_allclose(value, other[key], atol=atol, rtol=0, err_msg=key)
    assert ours[0].loss > 0
    assert theirs[0].loss > 0
