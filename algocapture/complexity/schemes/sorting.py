"""Sorting: the letters before the separator in nondecreasing order."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from algocapture.complexity.schemes.base import Integers, Scheme, Solver, rows
from algocapture.tasks.compiled import compiled
from algocapture.tasks.sorting import Sorting


@compiled
def counting_sort(letters: Integers, vocab: int, budget: int) -> tuple[Integers, int, bool]:
    """V counters cleared, T letters counted, V counters read, T letters written."""
    out = np.zeros(len(letters), np.int64)
    cost = 2 * len(letters) + 2 * vocab
    if cost > budget:  # the cost is known beforehand: the budget is compared once
        return out, 0, False
    counts = np.zeros(vocab, np.int64)
    spent = vocab
    for letter in letters:
        counts[letter] += 1
        spent += 1
    at = 0
    for letter in range(vocab):
        spent += 1
        for _ in range(counts[letter]):
            out[at] = letter
            at += 1
            spent += 1
    return out, spent, True


@compiled
def merge_sort(letters: Integers, budget: int) -> tuple[Integers, int, bool]:
    """Runs of 1, 2, 4, ... merged pairwise: every comparison and every move is counted."""
    length, spent, width = len(letters), 0, 1
    source, target = letters.copy(), np.empty(len(letters), np.int64)
    while width < length:
        for start in range(0, length, 2 * width):
            middle, end = min(start + width, length), min(start + 2 * width, length)
            spent = _merge(source, target, start, middle, end, spent, budget)
            if spent < 0:
                return source, -spent - 1, False
        source, target = target, source
        width *= 2
    return source, spent, True


@compiled
def _merge(
    source: Integers, target: Integers, left: int, middle: int, end: int, spent: int, budget: int
) -> int:
    """Operations spent after the merge; -1 - spent if the budget ended it."""
    right, stop = middle, middle
    for at in range(left, end):
        both = left < stop and right < end
        if spent + 1 + both > budget:
            return -1 - spent
        spent += 1 + both
        if right >= end or (both and source[left] <= source[right]):
            target[at] = source[left]
            left += 1
        else:
            target[at] = source[right]
            right += 1
    return spent


def _counting(task: Sorting, inputs: Tensor) -> Solver:
    tokens, size = rows(inputs), inputs.shape[1] // 2

    def solve(i: int, budget: int) -> tuple[Integers, int, bool]:
        ordered, spent, finished = counting_sort(tokens[i, :size], task.vocab, budget)
        return _filled(task, ordered), spent, finished

    return solve


def _merging(task: Sorting, inputs: Tensor) -> Solver:
    tokens, size = rows(inputs), inputs.shape[1] // 2

    def solve(i: int, budget: int) -> tuple[Integers, int, bool]:
        ordered, spent, finished = merge_sort(tokens[i, :size], budget)
        return _filled(task, ordered), spent, finished

    return solve


def _filled(task: Sorting, ordered: Integers) -> Integers:
    """As the targets: separators, then the sorted letters."""
    return np.concatenate([np.full(len(ordered), task.vocab), ordered])


SORTING = (
    Scheme("counting sort", Sorting, "a counter or letter touched", "1: 2 T + 2 V", _counting, 1.0),
    Scheme("merge sort", Sorting, "a comparison or a move",
           "1 with a logarithm: about 2 T log2 T", _merging),
)  # fmt: skip
