"""Context-free grammars in strict Chomsky normal form, given or drawn, and their tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from algocapture.config import register
from algocapture.rng import Seed
from algocapture.tasks import cyk
from algocapture.tasks.base import check_integer
from algocapture.tasks.cyk import Floats, Integers, Tables

MOST_SYMBOLS = 1000  # variables or terminals: charts hold a row for each


@register
@dataclass(frozen=True)
class Grammar:
    """Rules A -> B C as (A, B, C) and A -> a as (A, a); variables and terminals are numbered.

    Without weights all rules of a kind weigh the same. Binary weights are divided by the spectral
    radius of the mean offspring matrix (critical branching); by itself that does not change the
    law at a given length, since every tree with L leaves uses L - 1 binary rules.

    >>> Grammar(variables=1, terminals=1, binary=((0, 0, 0),), terminal=((0, 0),)).start
    0
    """

    variables: int
    terminals: int
    binary: tuple[tuple[int, int, int], ...]
    terminal: tuple[tuple[int, int], ...]
    start: int = 0
    binary_weights: tuple[float, ...] = ()
    terminal_weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("variables", "terminals"):
            check_integer(name, getattr(self, name), least=1, most=MOST_SYMBOLS)
        check_integer("start", self.start, least=0)
        if self.start >= self.variables:
            raise ValueError(f"start must lie in [0, {self.variables}), got {self.start!r}")
        for name, bounds in (
            ("binary", (self.variables,) * 3),
            ("terminal", (self.variables, self.terminals)),
        ):
            rules, weights = getattr(self, name), getattr(self, f"{name}_weights")
            object.__setattr__(self, name, _rules(name, rules, bounds))
            object.__setattr__(self, f"{name}_weights", _weights(name, weights, len(rules)))
        if self.start not in productive(self):
            raise ValueError(
                f"start = {self.start} derives no string: add terminal rules (A, a) so that every "
                "branch from it can end"
            )


def _rules(name: str, rules: object, bounds: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Rules as tuples; lists are welcome."""
    form = "(A, B, C)" if len(bounds) == 3 else "(A, a)"
    if not isinstance(rules, list | tuple):
        raise ValueError(f"{name} must be a list or tuple of rules {form}, got {rules!r}")
    ranges = ", ".join(f"[0, {bound})" for bound in bounds)
    for rule in rules:
        inside = isinstance(rule, list | tuple) and len(rule) == len(bounds)
        pairs = zip(rule, bounds, strict=True) if inside else ()
        if not inside or not all(type(x) is int and 0 <= x < bound for x, bound in pairs):
            raise ValueError(f"{name} rule {rule!r}: expected {form}, integers in {ranges}")
    found = tuple(map(tuple, rules))
    twice = [rule for rule, count in Counter(found).items() if count > 1]
    if twice:
        raise ValueError(f"{name} rule {twice[0]!r} is given twice: give it once, with a weight")
    return found


def _weights(name: str, weights: object, rules: int) -> tuple[float, ...]:
    if not isinstance(weights, list | tuple):
        raise ValueError(f"{name}_weights must be a list or tuple of numbers, got {weights!r}")
    if weights and len(weights) != rules:
        raise ValueError(f"{name}_weights has {len(weights)} entries for {rules} rules")
    for weight in weights:
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not number or not 0 < weight < np.inf:
            raise ValueError(f"{name}_weights must be finite and > 0, got {weight!r}")
    return tuple(map(float, weights))


def productive(grammar: Grammar) -> set[int]:
    """The variables that derive at least one string."""
    found = {a for a, _ in grammar.terminal}
    while True:
        more = {a for a, b, c in grammar.binary if b in found and c in found} - found
        if not more:
            return found
        found |= more


@lru_cache(maxsize=64)
def draw(
    variables: int, terminals: int, binary_rules: int, terminal_rules: int, seed: int
) -> Grammar:
    """A random grammar whose variables all reach each other and whose terminals all occur.

    A random cycle through all variables (each has its successor as one child of its first rule)
    makes it strongly connected; all else is uniform, save that every variable takes its terminals
    from those that are least used so far. Every variable derives strings of every length.
    A variable branches with probability 1/2, which is critical (spectral radius 1): Z[A, L] is the
    probability that branching from A ends with L leaves, C(L-1) 2^(1-2L) for the Catalan number C.
    """
    rng = Seed(seed).child("grammar", variables, terminals, binary_rules, terminal_rules).numpy()
    cycle = rng.permutation(variables)
    successor = dict(zip(cycle.tolist(), np.roll(cycle, -1).tolist(), strict=True))
    binary = [
        (a, *pair)
        for a in range(variables)
        for pair in _children(rng, variables, binary_rules, successor[a])
    ]
    used = np.zeros(terminals, np.int64)
    terminal = []
    for a in rng.permutation(variables).tolist():
        least = np.argsort(used + rng.random(terminals))[:terminal_rules]
        used[least] += 1
        terminal += [(a, token) for token in sorted(least.tolist())]
    return Grammar(
        variables,
        terminals,
        tuple(binary),
        tuple(sorted(terminal)),
        binary_weights=(0.5 / binary_rules,) * len(binary),
        terminal_weights=(0.5 / terminal_rules,) * len(terminal),
    )


def _children(
    rng: np.random.Generator, variables: int, rules: int, successor: int
) -> list[tuple[int, int]]:
    """`rules` distinct pairs; the first one holds the successor on either side."""
    other = int(rng.integers(variables))
    first = (successor, other) if rng.random() < 0.5 else (other, successor)
    pairs = [first]
    for code in rng.permutation(variables**2).tolist():
        if len(pairs) == rules:
            break
        if divmod(code, variables) != first:
            pairs.append(divmod(code, variables))
    return pairs


@lru_cache(maxsize=64)
def tables(grammar: Grammar) -> Tables:
    """The grammar as flat arrays, with critically normalised weights."""
    binary = np.array(grammar.binary, np.int64).reshape(-1, 3)
    terminal = np.array(grammar.terminal, np.int64).reshape(-1, 2)
    weight = critical(grammar)
    terminal_weight = np.array(grammar.terminal_weights or (1.0,) * len(terminal))
    by_parent, parent_at = _rows_of(binary[:, 0], grammar.variables)
    by_child, child_at = _rows_of(binary[:, 1], grammar.variables)
    by_variable, variable_at = _rows_of(terminal[:, 0], grammar.variables)
    by_token, token_at = _rows_of(terminal[:, 1], grammar.terminals)
    return Tables(
        start=grammar.start,
        binary_at=parent_at,
        left=binary[by_parent, 1],
        right=binary[by_parent, 2],
        weight=weight[by_parent],
        terminal_at=variable_at,
        terminal=terminal[by_variable, 1],
        terminal_weight=terminal_weight[by_variable],
        child_at=child_at,
        child_parent=binary[by_child, 0],
        child_right=binary[by_child, 2],
        child_weight=weight[by_child],
        token_at=token_at,
        token_parent=terminal[by_token, 0],
        token_weight=terminal_weight[by_token],
    )


def _rows_of(keys: Integers, count: int) -> tuple[Integers, Integers]:
    """A stable order by key and where each key's rows begin."""
    return np.argsort(keys, kind="stable"), np.searchsorted(np.sort(keys), np.arange(count + 1))


def critical(grammar: Grammar) -> Floats:
    """Binary weights divided by the spectral radius of M[A, B], the mean number of Bs below A."""
    weights = np.array(grammar.binary_weights or (1.0,) * len(grammar.binary), np.float64)
    radius = spectral_radius(grammar, weights)
    return weights / radius if radius > 0 else weights  # 0: derivations are of bounded depth


def spectral_radius(grammar: Grammar, weights: Floats) -> float:
    offspring = np.zeros((grammar.variables, grammar.variables))
    for (a, b, c), weight in zip(grammar.binary, weights, strict=True):
        offspring[a, b] += weight
        offspring[a, c] += weight
    return float(np.abs(np.linalg.eigvals(offspring)).max())


@lru_cache(maxsize=32)
def partition(grammar: Grammar, longest: int) -> tuple[Floats, float]:
    """Z[A, L] for L <= longest as (table, rate): Z = table * e^(rate L)."""
    return cyk.partition(tables(grammar), longest)
