"""Induction: what followed the first occurrence of the last token?"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from algocapture.complexity.schemes.base import Integers, Scheme, Solver, rows
from algocapture.tasks.compiled import compiled
from algocapture.tasks.induction import Induction

FREE = -1
SCATTER = 2654435761  # Knuth's multiplicative hash


@compiled
def linear_scan(tokens: Integers, budget: int) -> tuple[int, int, bool]:
    """Compare every token with the last one, from the left; two reads besides."""
    spent = 2
    if spent > budget:
        return 0, 0, False
    trigger = tokens[len(tokens) - 1]
    for i in range(len(tokens)):
        if spent >= budget:
            return 0, spent, False
        spent += 1
        if tokens[i] == trigger:
            return tokens[i + 1], spent, True
    return 0, spent, True


@compiled
def hash_table(tokens: Integers, budget: int) -> tuple[int, int, bool]:
    """A table from each token to its first successor, open addressing with linear probing.

    It costs its clearing, 2 T slots, and every probe: it would answer any later trigger in O(1).
    """
    length = len(tokens)
    slots = 2 * length
    if slots > budget:
        return 0, 0, False
    keys, values = np.full(slots, FREE, np.int64), np.empty(slots, np.int64)
    spent = slots
    for i in range(length):
        at = (tokens[i] * SCATTER) % slots
        while True:
            if spent >= budget:
                return 0, spent, False
            spent += 1
            if keys[at] == tokens[i] or keys[at] == FREE:
                break
            at = (at + 1) % slots
        if i == length - 1:
            return values[at], spent, True
        if keys[at] == FREE:
            keys[at], values[at] = tokens[i], tokens[i + 1]
    return 0, spent, True


def _scan(task: Induction, inputs: Tensor) -> Solver:
    tokens = rows(inputs)
    return lambda i, budget: linear_scan(tokens[i], budget)


def _hash(task: Induction, inputs: Tensor) -> Solver:
    tokens = rows(inputs)
    return lambda i, budget: hash_table(tokens[i], budget)


INDUCTION = (
    Scheme("linear scan", Induction, "a token read", "1: T/4 comparisons on average", _scan, 1.0),
    Scheme("hash table", Induction, "a slot cleared or probed", "1: 2 T slots, T insertions",
           _hash, 1.0),
)  # fmt: skip
