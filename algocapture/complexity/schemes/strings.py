"""String matching: does the pattern behind the separator occur in the text before it?"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from algocapture.complexity.schemes.base import Integers, Scheme, Solver, rows
from algocapture.tasks.compiled import compiled
from algocapture.tasks.string_match import StringMatch


@compiled
def naive(text: Integers, pattern: Integers, budget: int) -> tuple[int, int, bool]:
    """Every window from the left, letter by letter up to the first difference."""
    spent = 0
    for start in range(len(text) - len(pattern) + 1):
        equal = 0
        while equal < len(pattern):
            if spent >= budget:
                return 0, spent, False
            spent += 1
            if text[start + equal] != pattern[equal]:
                break
            equal += 1
        if equal == len(pattern):
            return 1, spent, True
    return 0, spent, True


@compiled
def knuth_morris_pratt(text: Integers, pattern: Integers, budget: int) -> tuple[int, int, bool]:
    """Comparisons of letters: at most 2 m for the pattern's borders and 2 T for the text."""
    m = len(pattern)
    border, spent = _borders(pattern, budget)
    equal, at = 0, 0
    while at < len(text):
        if spent >= budget:
            return 0, spent, False
        spent += 1
        if text[at] == pattern[equal]:
            equal, at = equal + 1, at + 1
            if equal == m:
                return 1, spent, True
        elif equal > 0:
            equal = border[equal]
        else:
            at += 1
    return 0, spent, True


@compiled
def _borders(pattern: Integers, budget: int) -> tuple[Integers, int]:
    """border[q]: the longest proper prefix of the first q letters that is also their suffix.

    Beyond the budget the table is left as it is: the caller has then no step left to use it.
    """
    border = np.zeros(len(pattern) + 1, np.int64)
    spent, equal, at = 0, 0, 1
    while at < len(pattern) and spent < budget:
        spent += 1
        if pattern[at] == pattern[equal]:
            equal, at = equal + 1, at + 1
            border[at] = equal
        elif equal > 0:
            equal = border[equal]
        else:
            at += 1
    return border, spent


def _split(task: StringMatch, inputs: Tensor) -> tuple[Integers, Integers]:
    tokens, m = rows(inputs), task.pattern_length
    return np.ascontiguousarray(tokens[:, : -1 - m]), np.ascontiguousarray(tokens[:, -m:])


def _naive(task: StringMatch, inputs: Tensor) -> Solver:
    texts, patterns = _split(task, inputs)
    return lambda i, budget: naive(texts[i], patterns[i], budget)


def _kmp(task: StringMatch, inputs: Tensor) -> Solver:
    texts, patterns = _split(task, inputs)
    return lambda i, budget: knuth_morris_pratt(texts[i], patterns[i], budget)


STRINGS = (
    Scheme("naive", StringMatch, "two letters compared",
           "1: T (1 + 1/V + ...) on average, m T at worst", _naive, 1.0),
    Scheme("Knuth-Morris-Pratt", StringMatch, "two letters compared", "1: at most 2 (T + m)",
           _kmp, 1.0),
)  # fmt: skip
