"""Recognition of context-free languages, grammars in Chomsky normal form.

Three recognisers: the dense chart of Cocke, Younger and Kasami, whose work does not depend on the
string; the same bottom-up chart by lists, which pays for the spans that exist; and Earley's, which
keeps only spans that some prefix calls for. Kernels take rules as rows (A, B, C) and (A, a).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from algocapture.complexity.schemes.base import Integers, Scheme, Solver, rows
from algocapture.tasks.compiled import compiled
from algocapture.tasks.grammar import GrammarRecognition

NONE = -1
Flags = NDArray[np.bool_]


class Rules(NamedTuple):
    """A grammar's rules; those of variable A are `*_at[A]:*_at[A + 1]` of its table."""

    start: int
    variables: int
    binary: Integers  # (A, B, C), by A
    binary_at: Integers
    terminal: Integers  # (A, a), by A
    terminal_at: Integers


@compiled
def cyk(
    tokens: Integers, start: int, variables: int, binary: Integers, terminal: Integers, budget: int
) -> tuple[int, int, bool]:
    """One operation: one rule tried at one split of one span, (T^3 - T)/6 of them for each rule."""
    length = len(tokens)
    chart = np.zeros((length + 1, length + 1, variables), np.bool_)  # [i, e]: tokens[i:e]
    spent = length * len(terminal)
    if spent > budget:
        return 0, 0, False
    for i in range(length):
        for a, token in terminal:
            if token == tokens[i]:
                chart[i, i + 1, a] = True
    for span in range(2, length + 1):
        cost = (length - span + 1) * (span - 1) * len(binary)
        if spent + cost > budget:
            return 0, spent, False
        spent += cost
        for i in range(length - span + 1):
            for k in range(i + 1, i + span):
                _try_all(chart, i, k, i + span, binary)
    return int(chart[0, length, start]), spent, True


@compiled
def _try_all(chart: Flags, i: int, k: int, e: int, binary: Integers) -> None:
    for r in range(len(binary)):
        if chart[i, k, binary[r, 1]] and chart[k, e, binary[r, 2]]:
            chart[i, e, binary[r, 0]] = True


@compiled
def cyk_by_lists(
    tokens: Integers,
    start: int,
    binary: Integers,
    binary_at: Integers,
    terminal: Integers,
    budget: int,
) -> tuple[int, int, bool]:
    """One operation: a rule A -> B C, a span of B and a span of C behind it; or a rule looked at.

    From right to left; ends[i, C] lists where a C from i ends. `binary` is sorted by B here.
    """
    length, variables = len(tokens), len(binary_at) - 1
    has = np.zeros((length, length + 1, variables), np.bool_)
    ends = np.empty((length, variables, length), np.int64)
    count = np.zeros((length, variables), np.int64)
    spent = 0
    for i in range(length - 1, -1, -1):
        if spent + len(terminal) > budget:
            return 0, spent, False
        spent += len(terminal)
        for a, token in terminal:
            if token == tokens[i]:
                _note(has, ends, count, i, i + 1, a)
        for e in range(i + 1, length):
            spent = _extend(has, ends, count, i, e, binary, binary_at, spent, budget)
            if spent < 0:
                return 0, -1 - spent, False
    return int(has[0, length, start]), spent, True


@compiled
def _note(has: Flags, ends: Integers, count: Integers, i: int, e: int, a: int) -> None:
    if not has[i, e, a]:
        has[i, e, a] = True
        ends[i, a, count[i, a]] = e
        count[i, a] += 1


@compiled
def _extend(
    has: Flags,
    ends: Integers,
    count: Integers,
    i: int,
    e: int,
    binary: Integers,
    binary_at: Integers,
    spent: int,
    budget: int,
) -> int:
    """Spans from i whose left part ends at e; operations spent, -1 - spent beyond the budget."""
    for b in range(has.shape[2]):
        first, stop = (binary_at[b], binary_at[b + 1]) if has[i, e, b] else (0, 0)
        for r in range(first, stop):
            c = binary[r, 2]
            cost = 1 + count[e, c]
            if spent + cost > budget:
                return -1 - spent
            spent += cost
            for n in range(count[e, c]):
                _note(has, ends, count, i, ends[e, c, n], binary[r, 0])
    return spent


class Agenda(NamedTuple):
    """Earley's sets. Nodes are items that wait for a variable, linked by (position, variable)."""

    first: Integers  # [j, X]: the last node added at j that waits for X
    following: Integers
    rule: Integers
    origin: Integers
    dot: Integers  # 0: waits for the left child; 1: for the right one
    counters: Integers  # nodes, operations, budget
    predicted: Integers  # [X]: the last j at which X was predicted
    active: Integers  # [r, i]: the last j with A -> B . C from i
    complete: Integers  # [A, i]: the last j with A over tokens[i:j]
    stack: Integers  # pairs (A, i) completed at j and not yet followed up


@compiled
def _pay(agenda: Agenda) -> bool:
    """Charge one operation; False if the budget does not cover it."""
    if agenda.counters[1] >= agenda.counters[2]:
        return False
    agenda.counters[1] += 1
    return True


@compiled
def _wait(agenda: Agenda, j: int, variable: int, rule: int, origin: int, dot: int) -> None:
    node = agenda.counters[0]
    agenda.rule[node], agenda.origin[node], agenda.dot[node] = rule, origin, dot
    agenda.following[node] = agenda.first[j, variable]
    agenda.first[j, variable] = node
    agenda.counters[0] += 1


@compiled
def _predict(agenda: Agenda, j: int, variable: int, binary: Integers, at: Integers) -> bool:
    """Every rule of a variable wanted at j, and of the left children that this wants in turn."""
    if agenda.predicted[variable] == j:
        return True
    agenda.predicted[variable] = j
    todo = np.empty(len(at), np.int64)
    todo[0], count = variable, 1
    while count:
        count -= 1
        a = todo[count]
        for r in range(at[a], at[a + 1]):
            if not _pay(agenda):
                return False
            b = binary[r, 1]
            _wait(agenda, j, b, r, j, 0)
            if agenda.predicted[b] != j:
                agenda.predicted[b] = j
                todo[count] = b
                count += 1
    return True


@compiled
def _push(agenda: Agenda, depth: int, a: int, i: int, j: int) -> int:
    """A spans tokens[i:j]: to be followed up, unless known."""
    if agenda.complete[a, i] == j:
        return depth
    agenda.complete[a, i] = j
    agenda.stack[depth, 0], agenda.stack[depth, 1] = a, i
    return depth + 1


@compiled
def _advance(agenda: Agenda, node: int, j: int, depth: int, binary: Integers, at: Integers) -> int:
    """Move a waiting item's dot over a span that ends at j: the stack's depth, -1 if stopped."""
    if not _pay(agenda):
        return -1
    r, origin = agenda.rule[node], agenda.origin[node]
    if agenda.dot[node] == 1:
        return _push(agenda, depth, binary[r, 0], origin, j)
    if agenda.active[r, origin] != j:
        agenda.active[r, origin] = j
        _wait(agenda, j, binary[r, 2], r, origin, 1)
        if not _predict(agenda, j, binary[r, 2], binary, at):
            return -1
    return depth


@compiled
def _follow(agenda: Agenda, j: int, depth: int, binary: Integers, at: Integers) -> bool:
    """Advance every item that waited for a completed span, until nothing new is complete."""
    while depth:
        depth -= 1
        a, i = agenda.stack[depth]
        node = agenda.first[i, a]
        while node != NONE:
            depth = _advance(agenda, node, j, depth, binary, at)
            if depth < 0:
                return False
            node = agenda.following[node]
    return True


@compiled
def earley(
    tokens: Integers,
    start: int,
    binary: Integers,
    binary_at: Integers,
    terminal: Integers,
    terminal_at: Integers,
    budget: int,
) -> tuple[int, int, bool]:
    """One operation: a rule predicted, a terminal compared, or a waiting item advanced.

    No rule is empty, so the items that wait at i < j are all there when a span from i ends at j.
    """
    length, variables = len(tokens), len(binary_at) - 1
    most = len(binary) * (length + 1) * (length + 4) // 2
    agenda = Agenda(
        np.full((length + 1, variables), NONE, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.array([0, 0, budget]),
        np.full(variables, NONE, np.int64),
        np.full((len(binary), length + 1), NONE, np.int64),
        np.full((variables, length + 1), NONE, np.int64),
        np.empty((variables * (length + 1), 2), np.int64),
    )
    if not _predict(agenda, 0, start, binary, binary_at):
        return 0, agenda.counters[1], False
    for j in range(1, length + 1):
        depth = _scan(agenda, tokens[j - 1], j, terminal, terminal_at)
        if depth < 0 or not _follow(agenda, j, depth, binary, binary_at):
            return 0, agenda.counters[1], False
        if depth == 0:
            break  # no prefix of the language goes on like this
    return int(agenda.complete[start, 0] == length), agenda.counters[1], True


@compiled
def _scan(agenda: Agenda, token: int, j: int, terminal: Integers, at: Integers) -> int:
    """Variables wanted at j - 1 that yield the token there; -1 beyond the budget."""
    depth = 0
    for a in range(len(at) - 1):
        first, stop = (at[a], at[a + 1]) if agenda.predicted[a] == j - 1 else (0, 0)
        for r in range(first, stop):
            if not _pay(agenda):
                return -1
            if terminal[r, 1] == token:
                depth = _push(agenda, depth, a, j - 1, j)
    return depth


def rules_of(task: GrammarRecognition) -> Rules:
    grammar = task.grammar
    binary, at = _by(np.array(grammar.binary, np.int64).reshape(-1, 3), 0, grammar.variables)
    terminal, terminal_at = _by(
        np.array(grammar.terminal, np.int64).reshape(-1, 2), 0, grammar.variables
    )
    return Rules(grammar.start, grammar.variables, binary, at, terminal, terminal_at)


def _by(table: Integers, column: int, keys: int) -> tuple[Integers, Integers]:
    """Rows sorted by a column, and where each key's rows begin."""
    ordered = table[np.argsort(table[:, column], kind="stable")]
    return ordered, np.searchsorted(ordered[:, column], np.arange(keys + 1))


def _cyk(task: GrammarRecognition, inputs: Tensor) -> Solver:
    tokens, g = rows(inputs), rules_of(task)
    return lambda i, budget: cyk(tokens[i], g.start, g.variables, g.binary, g.terminal, budget)


def _lists(task: GrammarRecognition, inputs: Tensor) -> Solver:
    tokens, g = rows(inputs), rules_of(task)
    by_left, at = _by(g.binary, 1, g.variables)
    return lambda i, budget: cyk_by_lists(tokens[i], g.start, by_left, at, g.terminal, budget)


def _earley(task: GrammarRecognition, inputs: Tensor) -> Solver:
    tokens, g = rows(inputs), rules_of(task)
    tables = g.binary, g.binary_at, g.terminal, g.terminal_at
    return lambda i, budget: earley(tokens[i], g.start, *tables, budget)


GRAMMAR = (
    Scheme("CYK", GrammarRecognition, "a rule tried at a split of a span",
           "3: (T^3 - T)/6 for each rule", _cyk, 3.0),
    Scheme("CYK by lists", GrammarRecognition, "a rule and two spans that exist joined",
           "at most 3; below it where few spans exist", _lists),
    Scheme("Earley", GrammarRecognition, "an item predicted, scanned or advanced",
           "at most 3; 2 for an unambiguous grammar", _earley),
)  # fmt: skip
