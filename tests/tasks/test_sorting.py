"""Sorting: the layout, Python's sort, and the closed form of the shortcut's error."""

import pytest
import torch

from algocapture.tasks import Sorting
from tests.zscores import mean_z, uniform_z


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("vocab", [2, 100, 300, 2**15])
@pytest.mark.parametrize("size", [1, 2, 33])
def test_layout_and_labels_by_pythons_sort(vocab: int, size: int) -> None:
    task = Sorting(vocab=vocab)
    batch = task.sample(size, 50, generator())
    assert batch.inputs.shape == batch.targets.shape == (50, 2 * size)
    assert (batch.inputs[:, size] == vocab).all()
    assert torch.equal(batch.inputs[:, size + 1 :], batch.targets[:, size:-1])
    for row, target in zip(batch.inputs.tolist(), batch.targets.tolist(), strict=True):
        assert target[size:] == sorted(row[:size])
    assert (batch.targets[:, :size] == vocab).all()
    place = torch.arange(2 * size)
    assert torch.equal(batch.mask, (place >= size - 1).expand(50, -1))
    assert torch.equal(task.scored(batch), (place >= size).expand(50, -1))


def test_letters_are_uniform() -> None:  # 2 z-scores
    batch = Sorting(vocab=20).sample(10, 20_000, generator())
    assert abs(uniform_z(batch.inputs[:, 0], 20)) < 4
    assert abs(uniform_z(batch.inputs[:, 9], 20)) < 4


def test_errors_by_token_and_by_instance() -> None:
    task = Sorting()
    batch = task.sample(10, 8, generator())
    predicted = batch.targets.clone()
    predicted[:, :10] = 0  # the prefix and the separator do not count
    predicted[3, 12] += 1
    predicted[5, 10:] += 1
    assert task.error(predicted, batch).tolist() == pytest.approx([0, 0, 0, 0.1, 0, 1, 0, 0])
    assert task.instance_error(predicted, batch).tolist() == [0, 0, 0, 1, 0, 1, 0, 0]


@pytest.mark.parametrize(("vocab", "size"), [(100, 30), (100, 900), (20, 200)])
def test_repeating_the_previous_token_errs_once_per_run(vocab: int, size: int) -> None:
    # wrong at the start of every run but a first run of 0, which is guessed after SEP; 3 z-scores
    task = Sorting(vocab=vocab)
    batch = task.sample(size, 400, generator(1))
    guess = torch.where(batch.inputs < vocab, batch.inputs, 0)
    absent = (1 - 1 / vocab) ** size
    expected = (vocab * (1 - absent) - (1 - absent)) / size
    errors = task.error(guess, batch)
    assert abs(mean_z(errors, expected)) < 4
    found = task.baselines(size, 400, generator(1))["repeat the previous token"]
    assert found == pytest.approx(float(errors.mean()))
