"""z-scores for Monte-Carlo tests. A test states how many it compares and holds |z| < 4."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def chi_square_z(counts: Tensor, probabilities: Tensor) -> float:
    """Pearson's statistic as a z-score, by Wilson and Hilferty's cube root."""
    expected = counts.sum() * probabilities.double()
    assert expected.min() >= 5, "too few draws for the chi-square law"
    statistic = float(((counts - expected) ** 2 / expected).sum())
    freedom = len(counts) - 1
    spread = 2 / (9 * freedom)
    return ((statistic / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)


def uniform_z(values: Tensor, kinds: int) -> float:
    """Are integers uniform on 0..kinds-1?"""
    counts = torch.bincount(values.flatten(), minlength=kinds)
    assert len(counts) == kinds, "a value lies outside the range"
    return chi_square_z(counts, torch.full((kinds,), 1 / kinds))


def mean_z(values: Tensor, expected: float) -> float:
    values = values.double()
    return float((values.mean() - expected) / (values.std() / math.sqrt(len(values))))


def difference_z(a: Tensor, b: Tensor) -> float:
    a, b = a.double(), b.double()
    return float((a.mean() - b.mean()) / (a.var() / len(a) + b.var() / len(b)).sqrt())
