"""Recogniser, sums over trees, sampler and mutants against brute force, nltk and networkx."""

from __future__ import annotations

import doctest
import itertools
import json
from collections import Counter
from dataclasses import replace

import nltk
import numpy as np
import pytest
import torch
from scipy import special, stats

import algocapture.tasks.grammar
from algocapture.config import digest, from_json, to_json
from algocapture.tasks import Grammar, GrammarRecognition, cyk, grammars

# Ambiguous, with unequal weights, unreachable and unproductive variables, not in critical form.
SMALL = Grammar(
    variables=6,
    terminals=2,
    binary=((0, 1, 2), (0, 0, 3), (1, 0, 2), (2, 1, 3), (3, 1, 1), (0, 4, 0), (5, 0, 0)),
    terminal=((0, 0), (1, 1), (2, 0), (3, 0), (5, 1)),
    binary_weights=(1.0, 0.5, 2.0, 3.0, 1.0, 1.0, 0.25),
    terminal_weights=(1.0, 2.0, 0.5, 3.0, 1.5),
)
# Every string has one parse: the right child is always a leaf of its own letter.
UNAMBIGUOUS = Grammar(
    variables=4,
    terminals=3,
    binary=((0, 0, 1), (0, 3, 2), (3, 0, 1), (3, 3, 2)),
    terminal=((0, 0), (1, 1), (2, 2), (3, 0)),
    binary_weights=(1.0, 2.0, 3.0, 0.5),
)


def strings(grammar: Grammar, longest: int) -> dict[tuple[int, int], dict[tuple, tuple]]:
    """(A, L) -> string -> (number of trees, their weight), by listing all derivations."""
    tables = grammars.tables(grammar)
    found = {(a, l): {} for a in range(grammar.variables) for l in range(1, longest + 1)}

    def add(a: int, string: tuple, trees: int, weight: float) -> None:
        old = found[a, len(string)].get(string, (0, 0.0))
        found[a, len(string)][string] = old[0] + trees, old[1] + weight

    terminal_weights = grammar.terminal_weights or (1.0,) * len(grammar.terminal)
    for (a, token), weight in zip(grammar.terminal, terminal_weights, strict=True):
        add(a, (token,), 1, weight)
    rules = list(zip(grammar.binary, grammars.critical(grammar), strict=True))
    assert sorted(w for _, w in rules) == sorted(tables.weight)
    splits = [(l, k) for l in range(2, longest + 1) for k in range(1, l)]
    for (length, k), ((a, b, c), weight) in itertools.product(splits, rules):
        pairs = itertools.product(found[b, k].items(), found[c, length - k].items())
        for (u, (m, x)), (v, (n, y)) in pairs:
            add(a, u + v, m * n, weight * x * y)
    return found


def uniform(vocab: int, n: int, length: int, seed: int) -> torch.Tensor:
    draws = torch.Generator().manual_seed(seed)
    return torch.randint(vocab, (n, length), generator=draws)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


SMALL_LANGUAGE = strings(SMALL, 8)


@pytest.mark.parametrize("length", range(1, 9))
def test_recogniser_equals_derivation_on_every_short_string(length: int) -> None:
    every = list(itertools.product(range(2), repeat=length))
    task = GrammarRecognition(rules=SMALL)
    members = SMALL_LANGUAGE[0, length]
    assert task.solve(torch.tensor(every)).tolist() == [int(s in members) for s in every]
    trees = task.parses(torch.tensor(every)).tolist()
    assert trees == [members.get(s, (0, 0.0))[0] for s in every]
    if length > 2:
        assert 0 < len(members) < 2**length, "the table of answers is constant"


def test_recogniser_equals_nltk() -> None:
    """Words cross no boundary here; the next test does that."""
    task = GrammarRecognition()
    grammar = task.grammar
    rules = [f"V{a} -> V{b} V{c}" for a, b, c in grammar.binary]
    rules += [f"V{a} -> '{token}'" for a, token in grammar.terminal]
    rules.sort(key=lambda rule: not rule.startswith(f"V{grammar.start} "))  # nltk's start is first
    parser = nltk.BottomUpLeftCornerChartParser(nltk.CFG.fromstring("\n".join(rules)))
    answers = []
    for size in (3, 6, 9):
        inputs = task.sample(size, 12, generator(size)).inputs
        inputs = torch.cat([inputs, uniform(16, 4, size, size)])
        parses = [len(list(parser.parse([str(token) for token in row]))) for row in inputs.tolist()]
        answers += parses
        assert task.solve(inputs).tolist() == [int(count > 0) for count in parses]
        assert task.parses(inputs).tolist() == parses
    assert 0 in answers
    assert 1 in answers


@pytest.mark.parametrize("length", [62, 63, 64, 65, 127, 128, 129, 200])
def test_bits_across_words_equal_sums_in_floats(length: int) -> None:
    task = GrammarRecognition()
    batch = task.sample(length, 10, generator(length))
    parsed = task.parses(batch.inputs) > 0
    assert torch.equal(parsed.long(), batch.targets)
    assert torch.equal(task.solve(batch.inputs), batch.targets)


@pytest.mark.parametrize("grammar", [SMALL, UNAMBIGUOUS])
def test_partition_equals_enumeration(grammar: Grammar) -> None:
    table, rate = grammars.partition(grammar, 8)
    language = SMALL_LANGUAGE if grammar is SMALL else strings(grammar, 8)
    for (a, length), found in language.items():
        weight = sum(w for _, w in found.values())
        assert table[a, length] * np.exp(rate * length) == pytest.approx(weight, rel=1e-12)


def test_partition_of_a_drawn_grammar_is_catalan_at_every_length() -> None:
    """Equal weights from every variable: Z[A, L] = C(L-1) 2^(1-2L)."""
    table, rate = grammars.partition(GrammarRecognition().grammar, 1500)
    lengths = np.arange(1, 1501)
    n = lengths - 1
    catalan = special.gammaln(2 * n + 1) - special.gammaln(n + 1) - special.gammaln(n + 2)
    expected = catalan + (1 - 2 * lengths) * np.log(2)
    found = np.log(table[:, 1:]) + rate * lengths
    np.testing.assert_allclose(found, np.tile(expected, (20, 1)), rtol=0, atol=1e-9)


def test_partition_survives_weights_of_any_scale() -> None:
    """Terminal weights x^L change no law: the table stays in range and the rate takes x up."""
    drawn = GrammarRecognition().grammar
    plain, rate = grammars.partition(drawn, 1200)
    for scale in (1e-9, 1e9):
        weights = tuple(scale * w for w in drawn.terminal_weights)
        table, moved = grammars.partition(replace(drawn, terminal_weights=weights), 1200)
        lengths = np.arange(1, 1201)
        assert (table[:, 1:] > 1e-250).all()
        assert (table < 1e250).all()
        change = np.log(table[:, 1:] / plain[:, 1:]) + (moved - rate) * lengths
        np.testing.assert_allclose(change, np.tile(lengths * np.log(scale), (20, 1)), rtol=1e-9)


@pytest.mark.parametrize(("grammar", "length"), [(SMALL, 4), (SMALL, 5), (UNAMBIGUOUS, 5)])
def test_members_follow_the_weights_of_their_trees(grammar: Grammar, length: int) -> None:
    found = strings(grammar, length)[0, length]
    n = 40_000
    drawn, _ = algocapture.tasks.grammar._strings(
        grammar, length, np.ones(n, np.int64), key=length, tries=0
    )
    counts = Counter(map(tuple, drawn.tolist()))
    assert set(counts) <= set(found)
    law = np.array([weight for _, weight in found.values()])
    expected = n * law / law.sum()
    observed = np.array([counts[string] for string in found])
    assert expected.min() > 5
    assert len(set(expected.round(6))) > 3, "the law is uniform: weights are not tested"
    assert stats.chisquare(observed, expected).pvalue > 1e-4  # 3 comparisons


def mutants(grammar: Grammar, length: int) -> set[tuple]:
    """All strings that a forbidden subtree of two leaves can make of a member."""
    language = strings(grammar, length)
    rules = set(grammar.binary)

    def broken(a: int, l: int) -> set[tuple]:
        """From A, with one substitution below."""
        found = set()
        for b, c, k in ((b, c, k) for p, b, c in rules if p == a for k in range(1, l)):
            lefts, rights = set(language[b, k]), set(language[c, l - k])
            left, right = broken(b, k), broken(c, l - k)
            for x in range(grammar.variables):
                if k == 2 and (a, x, c) not in rules:
                    left |= set(language[x, 2])
                if l - k == 2 and (a, b, x) not in rules:
                    right |= set(language[x, 2])
            found |= {u + v for u in left for v in rights} if lefts else set()
            found |= {u + v for u in lefts for v in right} if rights else set()
        return found

    return broken(grammar.start, length)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("length", [3, 4])
def test_negatives_are_the_mutants_outside_the_language(seed: int, length: int) -> None:
    """Up to T = 4 the scale is 2 and all mutants can be listed: each is seen, and nothing else."""
    grammar = grammars.draw(4, 3, 1, 1, seed)
    possible = mutants(grammar, length) - set(strings(grammar, length)[grammar.start, length])
    assert possible
    batch = GrammarRecognition(rules=grammar).sample(length, 20_000, generator())
    assert set(map(tuple, batch.inputs[batch.targets == 0].tolist())) == possible


@pytest.mark.parametrize("seed", range(3))
def test_share_of_mutants_that_stay_members(seed: int) -> None:
    """Exact at T = 3, by summing over all trees, intruders and subtrees: |z| < 4, 3 comparisons."""
    grammar = grammars.draw(4, 3, 2, 1, seed)
    language, rules = strings(grammar, 3), set(grammar.binary)
    kept = total = 0.0
    children = [(b, c) for a, b, c in grammar.binary if a == grammar.start]
    for (b, c), side in itertools.product(children, (0, 1)):
        leaf, node = (b, c) if side else (c, b)  # the node has two leaves; all trees weigh the same
        pairs = [(b, x) if side else (x, c) for x in range(grammar.variables)]
        intruders = [x for x, pair in enumerate(pairs) if (grammar.start, *pair) not in rules]
        assert node not in intruders
        for x in intruders:
            inner = [(s, trees) for s, (trees, _) in language[x, 2].items()]
            for (s, trees), (letter,) in itertools.product(inner, language[leaf, 1]):
                string = (letter, *s) if side else (*s, letter)
                weight = trees / sum(t for _, t in inner) / len(intruders)
                total += weight
                kept += weight * (string in language[grammar.start, 3])
    share, n = kept / total, 20_000
    found = GrammarRecognition(rules=grammar).kept(3, n, generator())
    assert 0 < share < 1
    assert abs(found - share) < 4 * (share * (1 - share) / n) ** 0.5


@pytest.mark.parametrize(("binary_rules", "terminal_rules"), [(1, 1), (1, 2), (2, 1)])
def test_every_label_holds_by_brute_force(binary_rules: int, terminal_rules: int) -> None:
    task = GrammarRecognition(
        variables=6, terminals=5, binary_rules=binary_rules, terminal_rules=terminal_rules
    )
    for size in (task.spec.smallest, 5, 6):
        members = strings(task.grammar, size)[task.grammar.start, size]
        batch = task.sample(size, 400, generator())
        labels = [int(tuple(row) in members) for row in batch.inputs.tolist()]
        assert batch.targets.tolist() == labels
        assert sum(labels) == 200


def test_mutated_nodes_have_all_scales() -> None:
    """Log-uniform on [2, T/2] up to the sizes that a tree has; uniform nodes are mostly small."""
    size, draws = 512, 1000
    tables = grammars.tables(GrammarRecognition().grammar)
    table, _ = grammars.partition(GrammarRecognition().grammar, size)
    nodes, tokens = np.empty((2 * size, 6), np.int64), np.empty(size, np.int64)
    chosen, uniform_large = np.empty(draws), np.empty(draws)
    for index in range(draws):
        state = cyk._stream(7, index)
        cyk._grow(tables, table, 0, 0, size, tokens, nodes, state)
        inner = nodes[1 : 2 * size - 1, cyk.LENGTH]
        uniform_large[index] = (inner[inner > 1] >= 32).mean()
        chosen[index] = nodes[cyk._choose_node(nodes, size, state), cyk.LENGTH]
    assert chosen.min() >= 2
    for scale in (4, 8, 16, 32, 64, 128):  # 0.06 is four standard deviations
        share = 1 - np.log(scale / 2) / np.log(size / 4)
        assert abs((chosen >= scale).mean() - share) < 0.06
    assert uniform_large.mean() < 0.25 < 0.35 < (chosen >= 32).mean()


def test_batches_do_not_depend_on_threads() -> None:
    task, before, batches = GrammarRecognition(), torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            batches.append(task.sample(20, 101, generator()))
            assert torch.equal(task.solve(batches[-1].inputs), batches[-1].targets)
    finally:
        torch.set_num_threads(before)
    for batch in batches[1:]:
        assert torch.equal(batch.inputs, batches[0].inputs)
        assert torch.equal(batch.targets, batches[0].targets)


def test_density_counts_members() -> None:
    """|z| < 4, 5 comparisons."""
    task = GrammarRecognition(rules=SMALL)
    for length in range(3, 8):
        members = SMALL_LANGUAGE[0, length]
        value, stderr = _density(task, length, 4000)
        assert abs(value - len(members) / 2**length) < 4 * stderr + 1e-12


def _density(task: GrammarRecognition, size: int, n: int) -> tuple[float, float]:
    return task.density(size, n, generator(size))


def test_density_of_a_dense_grammar_equals_uniform_strings() -> None:
    task = GrammarRecognition(binary_rules=3, terminal_rules=2)
    inside = task.solve(uniform(16, 40_000, 5, 0)).double()
    value, stderr = _density(task, 5, 4000)
    spread = (stderr**2 + float(inside.var()) / len(inside)) ** 0.5
    assert abs(value - float(inside.mean())) < 4 * spread
    assert value > 0.01


def test_density_without_ambiguity_is_exact_where_no_uniform_string_would_hit() -> None:
    task = GrammarRecognition(binary_rules=1, terminal_rules=2)
    value, stderr = task.density(10, 100, generator())
    catalan = special.comb(18, 9) / 10  # shapes, times 2 letters a leaf: no string has two parses
    assert value == pytest.approx(catalan * 2**10 / 16**10, rel=1e-9)
    assert stderr < 1e-9 * value


def test_user_grammar_is_a_configuration() -> None:
    task = GrammarRecognition(rules=SMALL)
    assert from_json(json.loads(json.dumps(to_json(task)))) == task
    assert task.grammar is SMALL
    assert task.spec.vocab == 2


def test_rules_may_be_lists() -> None:
    same = Grammar(2, 1, ((0, 0, 1), (0, 1, 1)), ((1, 0),), binary_weights=(1.0, 2.0))
    assert same == LISTED
    assert digest(LISTED) == digest(same)
    assert GrammarRecognition(rules=LISTED).solve(torch.zeros(2, 3, dtype=int)).tolist() == [1, 1]


def test_docstrings() -> None:
    for module in (algocapture.tasks.grammar, grammars):
        results = doctest.testmod(module)
        assert results.attempted > 0
        assert results.failed == 0


LOOP = {"variables": 2, "terminals": 1, "binary": ((0, 0, 1),), "terminal": ((1, 0),)}
LISTED = Grammar(2, 1, [[0, 0, 1], (0, 1, 1)], [(1, 0)], binary_weights=[1, 2])
BRACKETS = Grammar(4, 2, ((0, 1, 2), (0, 1, 3), (0, 0, 0), (3, 0, 2)), ((1, 0), (2, 1)))
EVERYTHING = Grammar(1, 1, ((0, 0, 0),), ((0, 0),))
BAD = [
    (lambda: GrammarRecognition(variables=1), "variables must be an integer >= 2, got 1"),
    (lambda: GrammarRecognition(terminals=0), "terminals must be an integer >= 1, got 0"),
    (lambda: GrammarRecognition(binary_rules=0), "binary_rules must be an integer >= 1, got 0"),
    (lambda: GrammarRecognition(binary_rules=401), "binary_rules must be at most 400, .*got 401"),
    (lambda: GrammarRecognition(terminal_rules=17), "terminal_rules must be at most 16.* got 17"),
    (lambda: GrammarRecognition(variables=5), "terminal_rules = 1 .*cannot produce all 16"),
    (lambda: GrammarRecognition(grammar_seed=-1), "grammar_seed must be an integer >= 0, got -1"),
    (lambda: GrammarRecognition(verified_limit=0), "verified_limit must be .* >= 1, got 0"),
    (lambda: GrammarRecognition(rules=SMALL, variables=6), "variables = 6 describes a drawn"),
    (lambda: Grammar(**LOOP), "start = 0 derives no string"),
    (lambda: Grammar(**LOOP | {"start": 2}), r"start must lie in \[0, 2\), got 2"),
    (lambda: Grammar(**LOOP | {"variables": 0}), "variables must be an integer >= 1, got 0"),
    (lambda: Grammar(**LOOP | {"variables": "2"}), "variables must be an integer >= 1, got '2'"),
    (lambda: Grammar(**LOOP | {"variables": 2.0}), "variables must be an integer >= 1, got 2.0"),
    (lambda: Grammar(**LOOP | {"terminals": 10**9}), "terminals must be at most 1000, got 10"),
    (lambda: Grammar(**LOOP | {"start": "S"}), "start must be an integer >= 0, got 'S'"),
    (lambda: Grammar(**LOOP | {"binary": None}), r"binary must be a list .* \(A, B, C\), got None"),
    (lambda: Grammar(**LOOP | {"binary": (0, 0, 1)}), r"binary rule 0: expected \(A, B, C\)"),
    (lambda: Grammar(**LOOP | {"binary": ((0, 0, 1.0),)}), r"binary rule \(0, 0, 1.0\)"),
    (lambda: Grammar(**LOOP | {"binary": ((0, 0, 2),)}), r"binary rule \(0, 0, 2\)"),
    (lambda: Grammar(**LOOP | {"terminal": ((0, 0, 0),)}), r"terminal rule \(0, 0, 0\)"),
    (lambda: Grammar(**LOOP | {"terminal": ((0, 0), (0, 0))}), "given twice"),
    (lambda: replace(SMALL, binary_weights=(1.0,)), "binary_weights has 1 entries for 7 rules"),
    (lambda: replace(UNAMBIGUOUS, terminal_weights=(1.0, 1.0, 0.0, 1.0)), "> 0, got 0.0"),
    (lambda: replace(LISTED, terminal_weights="a"), "terminal_weights must be .* got 'a'"),
    (lambda: replace(LISTED, terminal_weights=("a",)), "terminal_weights must be .* got 'a'"),
    (lambda: GrammarRecognition(rules="S -> A B"), "rules must be a Grammar or None, got 'S -> A"),
    (lambda: GrammarRecognition(variables=1001), "variables must be at most 1000, got 1001"),
    (lambda: GrammarRecognition(rules=BRACKETS).spec, "no length of 2..48 has both"),
    (lambda: GrammarRecognition(rules=EVERYTHING).spec, "no length of 1..24 has both"),
    (lambda: GrammarRecognition(verified_limit=30).sample(31, 2, generator()), "verified_limit"),
    (
        lambda: GrammarRecognition(binary_rules=3, terminal_rules=2).sample(60, 2, generator()),
        "size = 60 has no",
    ),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input_is_named(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call()
