"""What the engine keeps books with: generators made ahead, labels entered together."""

from dataclasses import replace

import pytest
import torch

from algocapture.protocol.labels import TABLE, WAITING, SeenLabels
from algocapture.protocol.streams import BLOCK, Stream
from algocapture.rng import Seed
from algocapture.tasks import Sorting
from algocapture.types import Batch, torch_generator
from tests.protocol.fakes import Coin

CPU = torch.device("cpu")


def test_generators_made_ahead_are_those_of_their_seeds():
    """In order, again, backwards and far off; a resumed member begins anywhere."""
    stream, seed = Stream(), Seed(3).child("train", 0)
    for number in (0, 1, 2, 2, 1, *range(2, 3 * BLOCK), 1000, 0):
        drawn = torch.rand(3, generator=stream.take(seed.child, number, CPU))
        assert torch.equal(drawn, torch.rand(3, generator=torch_generator(seed.child(number))))


def batch(labels: list[int], masked: list[int]) -> Batch:
    mask = torch.tensor([label not in masked for label in labels])
    return Batch(torch.zeros(len(labels), 2), torch.tensor(labels), mask, size=2)


def test_labels_are_seen_once_trained_on_and_not_where_masked():
    seen = SeenLabels(CPU)
    for number in range(WAITING + 3):  # some entered, some waiting
        seen.add(batch([number, 100 + number, TABLE + number], masked=[100 + number]))
    expected = {*range(WAITING + 3), TABLE - 1}  # labels beyond the table share its last place
    assert set(seen.table.nonzero().flatten().tolist()) == expected
    copy = SeenLabels(CPU)
    copy.load(seen.state())
    assert torch.equal(copy.table, seen.table)


def test_errors_are_split_by_the_labels_seen():
    seen, task = SeenLabels(CPU), Coin()
    seen.add(batch([0, 2], masked=[]))
    looked = batch([0, 0, 1, 2, 3, 1, 2], masked=[3])
    predicted = torch.tensor([0, 9, 1, 9, 9, 9, 2])
    split = seen.split(task, predicted, looked)
    assert (split.seen, split.wrong_seen, split.unseen, split.wrong_unseen) == (4, 2, 2, 1)


class Whole(Coin):
    def scored(self, batch):
        return batch.mask.long()


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.float64])
def test_labels_of_any_kind_and_masks_of_integers(dtype):
    seen, given = SeenLabels(CPU), batch([3, 7, 255], masked=[7])
    given = replace(given, targets=given.targets.to(dtype))
    seen.add(given)
    assert seen.table.nonzero().flatten().tolist() == [3, 255]
    split = seen.split(Whole(), given.targets, given)
    assert (split.seen, split.wrong_seen, split.unseen) == (2, 0, 0)


def test_only_scored_targets_are_split():
    task, seen = Sorting(vocab=20), SeenLabels(CPU)
    looked = task.sample(6, 50, torch.Generator().manual_seed(0))
    seen.add(looked)
    wrong = looked.targets + 1
    split = seen.split(task, wrong, looked)
    assert (split.seen, split.wrong_seen, split.unseen) == (300, 300, 0)
