"""Kernels for grammars in strict Chomsky normal form: recognise, count, sample, mutate.

All kernels take `Tables`, a grammar laid out as flat arrays (grammars.py makes them). Every
instance draws from its own stream, named by (key, index), so that neither the number of threads
nor the split into chunks shows in the result. The kernels stay in one file because numba's cache
does not watch others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from algocapture.tasks.compiled import compiled

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FACTOR1 = np.uint64(0xBF58476D1CE4E5B9)
FACTOR2 = np.uint64(0x94D049BB133111EB)
ONE = np.uint64(1)
# Columns of the table of nodes that a sampled tree leaves behind.
VARIABLE, AT, LENGTH, PARENT, SIBLING, SIDE = range(6)


class Tables(NamedTuple):
    """Rules sorted three ways; the rows that belong to x are `*_at[x]:*_at[x + 1]`."""

    start: int
    binary_at: Integers  # by left-hand side A of A -> B C
    left: Integers
    right: Integers
    weight: Floats
    terminal_at: Integers  # by left-hand side A of A -> a
    terminal: Integers
    terminal_weight: Floats
    child_at: Integers  # by left child B of A -> B C
    child_parent: Integers
    child_right: Integers
    child_weight: Floats
    token_at: Integers  # by terminal a of A -> a
    token_parent: Integers
    token_weight: Floats


# Random streams: splitmix64.


@compiled
def _mix(x: np.uint64) -> np.uint64:
    x = (x ^ (x >> np.uint64(30))) * FACTOR1
    x = (x ^ (x >> np.uint64(27))) * FACTOR2
    return x ^ (x >> np.uint64(31))


@compiled
def _stream(key: int, index: int) -> Words:
    state = np.empty(1, np.uint64)
    state[0] = _mix(np.uint64(key) ^ _mix(np.uint64(index) + GOLDEN))
    return state


@compiled
def _uniform(state: Words) -> float:
    """The next number in [0, 1)."""
    state[0] += GOLDEN
    return np.float64(_mix(state[0]) >> np.uint64(11)) * 2.0**-53


# The recogniser.


@compiled
def _recognise(tables: Tables, tokens: Integers, rows: Words) -> bool:
    """Whether the start derives `tokens`; afterwards bit e of rows[i, A] says A => tokens[i:e].

    Bit-parallel CYK: if B => tokens[i:e] and A -> B C, then A ends wherever a C from e ends.
    Bits are final in order of e, as an end of A from i lies beyond the end of its left child.
    """
    length = len(tokens)
    for i in range(length - 1, -1, -1):
        rows[i] = np.uint64(0)
        for r in range(tables.token_at[tokens[i]], tables.token_at[tokens[i] + 1]):
            rows[i, tables.token_parent[r], (i + 1) >> 6] |= ONE << np.uint64((i + 1) & 63)
        _extend(tables.child_at, tables.child_parent, tables.child_right, rows, i, length)
    return (rows[0, tables.start, length >> 6] >> np.uint64(length & 63)) & ONE == ONE


@compiled
def _extend(
    child_at: Integers,
    child_parent: Integers,
    child_right: Integers,
    rows: Words,
    i: int,
    length: int,
) -> None:
    """All spans from i, given those from later positions.

    It takes plain arrays, as do the loops below it: to hand over all of `tables` costs a reference
    count for each of its arrays, many times the work of the call.
    """
    for e in range(i + 1, length):
        word, shift = e >> 6, np.uint64(e & 63)
        for b in range(rows.shape[1]):
            if not (rows[i, b, word] >> shift) & ONE:
                continue
            for r in range(child_at[b], child_at[b + 1]):
                _unite(rows, i, child_parent[r], e, child_right[r])


@compiled
def _unite(rows: Words, i: int, a: int, e: int, c: int) -> None:
    for w in range(e >> 6, rows.shape[2]):
        rows[i, a, w] |= rows[e, c, w]


@compiled
def _rows(tables: Tables, length: int) -> Words:
    return np.empty((length, len(tables.binary_at) - 1, (length >> 6) + 1), np.uint64)


@compiled
def recognise(tables: Tables, inputs: Integers, targets: Integers) -> None:
    """targets[n] = 1 where inputs[n] is in the language, else 0."""
    rows = _rows(tables, inputs.shape[1])
    for n in range(len(inputs)):
        targets[n] = np.int64(_recognise(tables, inputs[n], rows))


# Sums over derivations.


@compiled
def inside(tables: Tables, inputs: Integers, leaf: float, sums: Floats) -> None:
    """sums[n] = summed weight of the parses of inputs[n], each leaf's weight times `leaf`."""
    length = inputs.shape[1]
    chart = np.empty((length, len(tables.binary_at) - 1, length + 1), np.float64)  # [i, A, e]
    for n in range(len(inputs)):
        chart[:] = 0.0
        for i in range(length - 1, -1, -1):
            token = inputs[n, i]
            for r in range(tables.token_at[token], tables.token_at[token + 1]):
                chart[i, tables.token_parent[r], i + 1] = tables.token_weight[r] * leaf
            _accumulate(
                tables.child_at,
                tables.child_parent,
                tables.child_right,
                tables.child_weight,
                chart,
                i,
            )
        sums[n] = chart[0, tables.start, length]


@compiled
def _accumulate(
    child_at: Integers,
    child_parent: Integers,
    child_right: Integers,
    child_weight: Floats,
    chart: Floats,
    i: int,
) -> None:
    """As `_extend`, with sums of weights in the place of bits."""
    for e in range(i + 1, len(chart)):
        for b in range(chart.shape[1]):
            if chart[i, b, e] == 0.0:
                continue
            for r in range(child_at[b], child_at[b + 1]):
                factor = child_weight[r] * chart[i, b, e]
                _add(chart, i, child_parent[r], e, child_right[r], factor)


@compiled
def _add(chart: Floats, i: int, a: int, e: int, c: int, factor: float) -> None:
    for end in range(e + 1, chart.shape[2]):
        chart[i, a, end] += factor * chart[e, c, end]


@compiled
def partition(tables: Tables, longest: int) -> tuple[Floats, float]:
    """(table, rate): Z[A, L], the weight of all trees from A with L leaves, is table * e^(rate L).

    A factor e^(-rate L) commutes with the convolution over splits, so the range can be re-centred
    at any time without changing the law of a tree.
    """
    variables = len(tables.binary_at) - 1
    table = np.zeros((variables, longest + 1), np.float64)
    rate = 0.0
    for a in range(variables):
        for r in range(tables.terminal_at[a], tables.terminal_at[a + 1]):
            table[a, 1] += tables.terminal_weight[r]
    for length in range(2, longest + 1):
        for a in range(variables):
            table[a, length] = _convolved(tables, table, a, length)
        largest = table[:, length].max()
        if largest > 0.0 and not 1e-100 < largest < 1e100:
            change = np.log(largest) / length
            rate += change
            for k in range(1, length + 1):
                table[:, k] *= np.exp(-change * k)
    return table, rate


@compiled
def _convolved(tables: Tables, table: Floats, a: int, length: int) -> float:
    """Sum over rules A -> B C and lengths k of W Z[B, k] Z[C, L - k]."""
    total = 0.0
    for r in range(tables.binary_at[a], tables.binary_at[a + 1]):
        b, c = table[tables.left[r]], table[tables.right[r]]
        part = 0.0
        for k in range(1, length):
            part += b[k] * c[length - k]
        total += tables.weight[r] * part
    return total


# Sampling.


@compiled
def _split(tables: Tables, table: Floats, a: int, length: int, u: float) -> tuple[int, int]:
    """(rule A -> B C, length of B) with probability W Z[B, k] Z[C, L-k] / Z[A, L].

    The walk goes inwards from both ends: splits follow a power law, so it ends early.
    """
    left = u * table[a, length]
    first, stop = tables.binary_at[a], tables.binary_at[a + 1]
    rule, size = -1, 0
    for j in range(length - 1):
        k = length - 1 - j // 2 if j % 2 else j // 2 + 1
        for r in range(first, stop):
            mass = tables.weight[r] * table[tables.left[r], k] * table[tables.right[r], length - k]
            left -= mass
            if mass > 0.0:
                rule, size = r, k  # the last one stands if rounding leaves a remainder
            if left < 0.0:
                return rule, size
    return rule, size


@compiled
def _leaf(tables: Tables, a: int, u: float) -> int:
    first, stop = tables.terminal_at[a], tables.terminal_at[a + 1]
    left = u * tables.terminal_weight[first:stop].sum()
    for r in range(first, stop):
        left -= tables.terminal_weight[r]
        if left < 0.0:
            return tables.terminal[r]
    return tables.terminal[stop - 1]


@compiled
def _grow(
    tables: Tables,
    table: Floats,
    root: int,
    at: int,
    length: int,
    tokens: Integers,
    nodes: Integers,
    state: Words,
) -> None:
    """Draw a tree from `root` onto tokens[at:at + length]; its nodes, parents first."""
    nodes[0, VARIABLE], nodes[0, AT], nodes[0, LENGTH] = root, at, length
    nodes[0, PARENT] = -1
    count = 1
    for p in range(2 * length - 1):
        a, at, length = nodes[p, VARIABLE], nodes[p, AT], nodes[p, LENGTH]
        if length == 1:
            tokens[at] = _leaf(tables, a, _uniform(state))
            continue
        rule, k = _split(tables, table, a, length, _uniform(state))
        b, c = tables.left[rule], tables.right[rule]
        for side in range(2):
            child = nodes[count + side]
            child[VARIABLE], child[SIBLING] = (c, b) if side else (b, c)
            child[AT] = at + k if side else at
            child[LENGTH] = length - k if side else k
            child[PARENT], child[SIDE] = a, side
        count += 2


@compiled
def _choose_node(nodes: Integers, length: int, state: Words) -> int:
    """An inner node below the root whose length is nearest, as a ratio, to a log-uniform scale.

    A uniform choice among nodes would follow the power law of subtree sizes: mostly pairs.
    """
    scale = 2.0 * np.exp(_uniform(state) * np.log(max(length / 4.0, 1.0)))  # in [2, T/2]
    best, chosen, ties = np.inf, -1, 0
    for p in range(1, 2 * length - 1):
        size = nodes[p, LENGTH]
        if size < 2:
            continue
        ratio = max(size / scale, scale / size)
        if ratio < best:
            best, chosen, ties = ratio, p, 1
        elif ratio == best:
            ties += 1
            if _uniform(state) * ties < 1.0:
                chosen = p
    return chosen


@compiled
def _has_rule(tables: Tables, parent: int, x: int, sibling: int, side: int) -> bool:
    b, c = (sibling, x) if side else (x, sibling)
    for r in range(tables.binary_at[parent], tables.binary_at[parent + 1]):
        if tables.left[r] == b and tables.right[r] == c:
            return True
    return False


@compiled
def _choose_intruder(tables: Tables, table: Floats, node: Integers, state: Words) -> int:
    """A variable that yields the node's length but that no rule allows in the node's place."""
    chosen, ties = -1, 0
    for x in range(len(table)):
        forbidden = not _has_rule(tables, node[PARENT], x, node[SIBLING], node[SIDE])
        if forbidden and table[x, node[LENGTH]] > 0.0:
            ties += 1
            if _uniform(state) * ties < 1.0:
                chosen = x
    return chosen


@compiled
def _mutant(tables: Tables, table: Floats, tokens: Integers, nodes: Integers, state: Words) -> bool:
    """A member with one subtree replaced by an intruder's of equal length; False if impossible."""
    length = len(tokens)
    _grow(tables, table, tables.start, 0, length, tokens, nodes, state)
    p = _choose_node(nodes, length, state)
    if p < 0:
        return False
    x = _choose_intruder(tables, table, nodes[p], state)
    if x < 0:
        return False
    _grow(tables, table, x, nodes[p, AT], nodes[p, LENGTH], tokens, nodes, state)
    return True


@compiled
def fill(
    tables: Tables,
    table: Floats,
    key: int,
    first: int,
    inputs: Integers,
    targets: Integers,
    attempts: Integers,
    most: int,
) -> None:
    """Members where targets is 1, verified non-members where it is 0; row r is (key, first + r).

    attempts[r]: mutants drawn for a non-member; 0 if all `most` of them were members.
    """
    length = inputs.shape[1]
    nodes = np.empty((2 * length, 6), np.int64)
    rows = _rows(tables, length)
    for r in range(len(inputs)):
        state = _stream(key, first + r)
        tokens = inputs[r]
        if targets[r] == 1:
            _grow(tables, table, tables.start, 0, length, tokens, nodes, state)
            continue
        attempts[r] = 0
        for attempt in range(1, most + 1):
            made = _mutant(tables, table, tokens, nodes, state)
            if made and not _recognise(tables, tokens, rows):
                attempts[r] = attempt
                break
