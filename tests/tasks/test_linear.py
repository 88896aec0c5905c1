"""The shortcut classifiers find planted shortcuts, and none where there is none."""

import pytest
import torch

from algocapture.tasks import GrammarRecognition
from algocapture.tasks.linear import bigram_counts, linear_error, token_counts
from algocapture.types import Batch

TASK = GrammarRecognition()


def batch(rule: str, seed: int) -> Batch:
    x = torch.randint(4, (2000, 12), generator=torch.Generator().manual_seed(seed))
    if rule == "tokens":
        y = ((x == 0).sum(1) > (x == 1).sum(1)).long()
    elif rule == "bigrams":
        y = ((x[:, :-1] == 2) & (x[:, 1:] == 3)).any(1).long()
    else:
        y = (x[:, 0] * x[:, 5] + x[:, 7]) % 2
    return Batch(x, y, torch.ones_like(y, dtype=torch.bool), 12)


@pytest.mark.parametrize(
    ("rule", "counts", "low", "high"),
    [
        ("tokens", token_counts, 0.0, 0.1),
        ("bigrams", bigram_counts, 0.0, 0.1),
        ("bigrams", token_counts, 0.2, 0.6),
        ("neither", token_counts, 0.4, 0.6),
        ("neither", bigram_counts, 0.4, 0.6),
    ],
)
def test_error_of_a_planted_rule(rule, counts, low, high) -> None:
    error = linear_error(TASK, lambda x: counts(x, 4), batch(rule, 0), batch(rule, 1))
    assert low <= error <= high


def test_counts() -> None:
    x = torch.tensor([[0, 1, 1, 2], [2, 2, 2, 2]])
    assert token_counts(x, 3).tolist() == [[1, 2, 1], [0, 0, 4]]
    bigrams = bigram_counts(x, 3).view(2, 3, 3)
    assert bigrams[0, 0, 1] == bigrams[0, 1, 1] == bigrams[0, 1, 2] == 1
    assert bigrams[1, 2, 2] == 3
    assert bigrams.sum() == 6
