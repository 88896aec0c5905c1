"""Greedy decoding, with oracles in place of networks."""

import pytest
import torch

from algocapture.learners import Learner, Prediction, decode, decoded_error
from algocapture.rng import Seed
from algocapture.tasks import Induction, Sorting
from algocapture.types import torch_generator

TASK = Sorting(vocab=7)


class Oracle(Learner):
    """Sorts what precedes the separator; member 1 errs at the third letter, then goes on from
    what it wrote."""

    members = 2

    def step(self, batches):
        raise NotImplementedError

    def state(self):
        return {}

    def load(self, state):
        raise NotImplementedError

    def predict(self, batches):
        return [None if b is None else self.answer(i, b) for i, b in enumerate(batches)]

    def answer(self, member, batch):
        inputs = batch.inputs
        size = int((inputs[0] == TASK.vocab).int().argmax())
        values = torch.full_like(inputs, TASK.vocab)
        done = inputs.shape[1] - size - 1
        values[:, -1] = inputs[:, :size].sort(1).values[:, done]
        if member == 1 and done == 2:
            values[:, -1] = (values[:, -1] + 1) % TASK.vocab
        return Prediction(values, flops=10 * inputs.shape[1])


def batch(n=4, size=5):
    return TASK.sample(size, n, torch_generator(Seed(0)))


def test_an_oracle_writes_the_sorted_list():
    data = batch()
    right, wrong = decode(Oracle(), [data.inputs[:, :6]] * 2, 5)
    assert torch.equal(right.ids, data.inputs[:, :5].sort(1).values)
    assert right.flops == 10 * (6 + 7 + 8 + 9 + 10)
    differs = wrong.ids != right.ids
    assert differs[:, 2].all()
    assert not differs[:, [0, 1, 3, 4]].any()


def test_one_wrong_letter_makes_the_instance_wrong():
    data = batch()
    right, wrong = decoded_error(TASK, Oracle(), [data, data])
    assert torch.equal(right, torch.zeros(4, dtype=torch.float64))
    assert torch.equal(wrong, torch.ones(4, dtype=torch.float64))


def test_members_may_wait():
    assert decoded_error(TASK, Oracle(), [None, batch()])[0] is None
    assert decoded_error(TASK, Oracle(), [None, None]) == [None, None]
    assert decode(Oracle(), [None, batch().inputs[:, :6]], 2)[0] is None


def test_other_tasks_are_refused():
    data = Induction(vocab=8).sample(9, 2, torch_generator(Seed(0)))
    with pytest.raises(ValueError, match="Induction is not autoregressive"):
        decoded_error(Induction(vocab=8), Oracle(), [data, None])


class Diverged(Oracle):
    """Its logits are not numbers, so that it has no answer; what it reads is always a token."""

    def answer(self, member, batch):
        assert (batch.inputs >= 0).all()
        return Prediction(torch.full_like(batch.inputs, -1), flops=1)


def test_a_member_that_has_diverged_decodes_nothing_right():
    data = TASK.sample(3, 200, torch_generator(Seed(0)))
    assert (data.inputs[:, :3] == 0).all(1).any()  # class 0 throughout would be right somewhere
    errors, _ = decoded_error(TASK, Diverged(), [data, None])
    assert errors.all()
