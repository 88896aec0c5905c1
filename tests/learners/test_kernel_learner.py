"""The kernel as a learner: batching, stages, exact continuation, and that it learns."""

import numpy as np
import pytest
import torch

from algocapture.config import from_json, to_json
from algocapture.kernels import InfiniteTransformer
from algocapture.learners import KernelRegression
from algocapture.rng import Seed
from algocapture.tasks import Induction, ShortestPath, Sorting
from algocapture.types import torch_generator

CPU = torch.device("cpu")
CONFIG = KernelRegression(
    InfiniteTransformer(2, "gelu", 1.7, 0.2, readout="last"), samples=64, ridge=1e-2
)
TASK = Induction(vocab=4)


def batch(n, seed, size=5, task=TASK):
    return task.sample(size, n, torch_generator(Seed(seed)))


def learner(task=TASK, config=CONFIG):
    return config.build(task, [Seed(0)], CPU)


def test_an_empty_learner_answers_and_a_taught_one_recalls():
    it = learner()
    train = batch(24, 1)
    (untaught,) = it.predict([train])
    assert untaught.values.shape == train.targets.shape
    assert untaught.flops == 0
    it.step([train])
    (taught,) = it.predict([train])
    assert taught.values.dtype == train.targets.dtype
    assert taught.flops > 0
    assert TASK.error(taught.values, train).mean() < TASK.error(untaught.values, train).mean()
    (again,) = it.predict([train])
    assert torch.equal(again.values, taught.values)
    assert again.flops < taught.flops  # nothing is fitted twice


def test_a_stage_is_one_problem_however_it_was_batched():
    whole, parts = learner(), learner()
    train, more, test = batch(8, 1), batch(6, 2, size=6), batch(5, 3)
    whole.step([train])
    parts.step([train[:3]])
    parts.step([train[3:]])
    for it in (whole, parts):
        it.begin_stage(0)
        it.step([more])
    one, two = (
        it.predictor(0).predict(list(CONFIG.embed(test.inputs, TASK.spec))) for it in (whole, parts)
    )
    np.testing.assert_array_equal(one, two)
    assert len(whole.predictor(0).grams()) == 2


@pytest.mark.parametrize("pending", [False, True])
def test_a_loaded_state_continues_bit_for_bit(pending):
    original, test = learner(), batch(5, 9)
    original.step([batch(6, 1)])
    original.predict([test])
    original.begin_stage(0)
    original.step([batch(4, 2, size=7)])
    original.predict([test])
    original.step([batch(3, 3, size=6)])
    if not pending:
        original.predict([test])
    copy = learner()
    copy.load({k: v.copy() for k, v in original.state().items()})
    for it in (original, copy):
        it.step([batch(2, 4)])
    items = list(CONFIG.embed(test.inputs, TASK.spec))
    one, two = (it.predictor(0).predict(items) for it in (original, copy))
    np.testing.assert_array_equal(one, two)
    assert original.state().keys() == copy.state().keys()


def test_points_are_embedded_with_their_marks():
    task = ShortestPath()
    points = batch(4, 1, task=task)
    x = CONFIG.embed(points.inputs, task.spec)
    sigma = torch.einsum("nad,nbd->nab", x, x) / x.shape[-1]
    plain = torch.einsum("nad,nbd->nab", points.inputs.double(), points.inputs.double())
    marked = torch.zeros(5, 5, dtype=torch.float64)
    for position in task.spec.marks:
        marked[position, position] = 1
    torch.testing.assert_close(sigma, plain + marked)
    it = learner(task)
    it.step([points])
    assert it.predict([points])[0].values.shape == points.targets.shape


def test_what_it_cannot_learn_is_said():
    it = learner(Sorting())
    with pytest.raises(ValueError, match="one answer an instance"):
        it.step([batch(3, 1, task=Sorting())])
    with pytest.raises(ValueError, match="readout = 'tokens'"):
        KernelRegression(InfiniteTransformer())
    assert from_json(to_json(CONFIG)) == CONFIG
