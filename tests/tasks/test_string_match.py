"""String matching: Python's `in`, counted near misses, and no trace of the class but the match."""

import itertools

import pytest
import torch

from algocapture.tasks import StringMatch, string_match
from tests.zscores import difference_z, mean_z, uniform_z

TASKS = [
    StringMatch(),
    StringMatch(near_misses=0),
    StringMatch(near_misses=3),
    StringMatch(alphabet=4, near_misses=2),  # a stray match in every other instance
    StringMatch(alphabet=3, pattern_length=2, near_misses=2),
    StringMatch(alphabet=6, pattern_length=5),
    StringMatch(pattern=(7, 7, 7)),
    StringMatch(alphabet=4, pattern=(0, 1, 0)),
]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def near_misses(text: list[int], pattern: list[int]) -> list[int]:
    """Where the windows start that differ from the pattern in exactly one letter."""
    m = len(pattern)
    return [
        i
        for i in range(len(text) - m + 1)
        if sum(a != b for a, b in zip(text[i : i + m], pattern, strict=True)) == 1
    ]


def apart(starts: list[int], m: int) -> int:
    """How many windows of length m are disjoint, taken greedily from the left."""
    count = end = 0
    for start in starts:
        if start >= end:
            count, end = count + 1, start + m
    return count


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_labels_by_looking_for_the_substring(task: StringMatch) -> None:
    m, smallest = task.pattern_length, task.spec.smallest
    for size in (smallest, smallest + 1, smallest + 30):
        batch = task.sample(size, 100, generator())
        assert batch.inputs.shape == (100, size + 1 + m)
        assert (batch.inputs[:, size] == task.alphabet).all()
        assert batch.targets.sum() == 50
        for row, target in zip(batch.inputs.tolist(), batch.targets.tolist(), strict=True):
            text, pattern = row[:size], row[size + 1 :]
            assert task.pattern is None or tuple(pattern) == task.pattern
            found = any(text[i : i + m] == pattern for i in range(size - m + 1))
            assert found == bool(target)
            assert apart(near_misses(text, pattern), m) >= task.near_misses  # those planted remain


def test_a_positive_is_a_negative_with_the_pattern_written_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task, size, n = StringMatch(alphabet=5, near_misses=2), 60, 500
    classes = []
    for label in (False, True):
        monkeypatch.setattr(
            string_match, "_half", lambda n, _, label=label: torch.full((n,), label)
        )
        classes.append(task.sample(size, n, generator()).inputs)
    negative, positive = classes
    assert torch.equal(negative[:, size:], positive[:, size:])
    for row, other in zip(negative.tolist(), positive.tolist(), strict=True):
        differ = [i for i in range(size) if row[i] != other[i]]
        starts = [i for i in range(size - 2) if other[i : i + 3] == other[size + 1 :]]
        assert differ, "the negative holds the pattern"
        assert any(s <= differ[0] and differ[-1] < s + 3 for s in starts)


def test_places_are_uniform() -> None:  # 1 z-score
    # T=10: the starts s < t of two windows of 3 with t - s >= 5 are 6 pairs; either is the site
    site, others = StringMatch()._places(10, 24_000, generator())
    assert torch.equal(site, site[:, :1] + torch.arange(3))
    pairs = torch.stack([site[:, 0], others[:, 0]], 1).tolist()
    legal = [(s, t) for s in range(8) for t in range(8) if abs(s - t) >= 5]
    found = torch.tensor([legal.index((s, t)) for s, t in pairs])
    assert abs(uniform_z(found, len(legal))) < 4


def test_a_near_miss_has_one_uniform_wrong_letter() -> None:  # 1 z-score
    task, n = StringMatch(alphabet=5, near_misses=2), 10_000
    pattern = torch.randint(5, (n, 3), generator=generator())
    copies = task._near_misses(pattern, generator(1)).view(n, 2, 3)
    step = (copies - pattern[:, None]) % 5
    assert (step > 0).sum(2).eq(1).all()
    place = (step > 0).byte().argmax(2)
    assert abs(uniform_z(place * 4 + step.amax(2) - 1, 12)) < 4


@pytest.mark.parametrize("pattern", [(0, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1), (0, 1, 2)])
def test_strays_go_and_near_misses_stay(pattern: tuple[int, int, int]) -> None:
    # Every text of 7 letters out of 4 with a near miss at its start, middle or end
    task = StringMatch(alphabet=4, pattern=pattern)
    every = torch.tensor(list(itertools.product(range(4), repeat=7)))
    wanted = torch.tensor([pattern]).expand(len(every), -1)
    for start in (0, 2, 4):
        place = start + torch.arange(3)
        texts = every[(every[:, place] != wanted).sum(1) == 1]
        freed = texts.clone()
        task._free(freed, wanted[: len(texts)], place.expand(len(texts), -1), generator())
        assert torch.equal(freed[:, place], texts[:, place])
        assert not (freed.unfold(1, 3, 1) == torch.tensor(pattern)).all(2).any()
        changed = freed[freed != texts]
        assert len(changed) > 0
        assert not torch.isin(changed, torch.tensor(pattern)).any()
        clean = ~(texts.unfold(1, 3, 1) == torch.tensor(pattern)).all(2).any(1)
        assert torch.equal(freed[clean], texts[clean])


def test_counting_near_misses_tells_nothing() -> None:  # 4 z-scores
    task, size, n = StringMatch(), 50, 20_000
    batch = task.sample(size, n, generator())
    count = (task.matches(batch.inputs) == 2).sum(1)
    positive = batch.targets == 1
    # a match leaves 4 overlapping windows and its own with other chances: below one in a hundred
    assert abs(difference_z(count[positive], count[~positive])) < 4
    found = task.baselines(size, n, generator(1))
    assert abs(mean_z(positive, 0.5)) == 0
    assert abs(found["near misses"] - 0.5) < 4 * 0.5 / n**0.5
    assert 0.2 < found["sum of aligned matches"] < 0.35
    assert 0.05 < found["near misses and matches"] < 0.15, "an honest shortcut at small sizes"


def test_texts_are_uniform() -> None:  # 2 z-scores
    # no letter is special: renaming the letters of text and pattern keeps the law
    batch = StringMatch().sample(50, 20_000, generator(2))
    assert abs(uniform_z(batch.inputs[:, 20], 26)) < 4
    assert abs(uniform_z(batch.inputs[:, 51], 26)) < 4
