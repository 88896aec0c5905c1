"""Induction: the law of the paper, and labels by reading the list in Python."""

import torch

from algocapture.tasks import Induction
from algocapture.types import Batch
from tests.zscores import chi_square_z, uniform_z


def draw(vocab: int, size: int, n: int) -> Batch:
    return Induction(vocab=vocab).sample(size, n, torch.Generator().manual_seed(0))


def test_labels_by_reading_the_list() -> None:
    for size in (4, 5, 7, 50):
        batch = draw(16, size, 200)
        for row, target in zip(batch.inputs.tolist(), batch.targets.tolist(), strict=True):
            assert row.count(row[-1]) == 2
            assert row.index(row[-1]) < (size + 1) // 2
            assert row[row.index(row[-1]) + 1] == target
            assert target != row[-1]


def test_the_law() -> None:  # 3 z-scores at each of 2 sizes, 2 more below
    vocab, n = 12, 40_000
    for size in (5, 10):
        batch = draw(vocab, size, n)
        trigger = batch.inputs[:, -1]
        first = (batch.inputs == trigger[:, None]).byte().argmax(1)
        assert abs(uniform_z(first, (size + 1) // 2)) < 4
        assert abs(uniform_z(trigger, vocab)) < 4
        assert abs(uniform_z(batch.targets, vocab)) < 4
    # beyond the first half no trigger is written: every letter but the trigger, its successor twice
    step = (batch.inputs[:, 7] - trigger) % vocab
    law = torch.full((vocab - 1,), 1 / vocab)
    law[0] *= 2
    assert abs(chi_square_z(torch.bincount(step, minlength=vocab)[1:], law)) < 4
    step = (batch.targets - trigger) % vocab
    assert abs(chi_square_z(torch.bincount(step, minlength=vocab)[1:], law)) < 4


def test_the_last_letter_is_replaced_by_the_first() -> None:
    batch = draw(3, 40, 500)
    last = batch.inputs[batch.inputs[:, -1] == 2]
    assert (last == 2).sum(1).eq(2).all()
    assert (last == 0).sum() > (last == 1).sum()


def test_baselines_fall_short_of_the_task() -> None:
    found = Induction().baselines(50, 1000, torch.Generator().manual_seed(1))
    assert min(found.values()) > 0.9
    tiny = Induction().baselines(4, 4000, torch.Generator().manual_seed(1))
    assert 0.45 < tiny["second token"] < 0.55, "at T=4 the answer is at one of two places"
