"""Drawn grammars have the properties that are promised; weights are made critical."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from scipy import special

from algocapture.tasks import Grammar, grammars


def test_weights_are_made_critical() -> None:
    """S -> S S of weight 3, S -> a: the mean offspring is 6, so that 3/6 stands for 3 and
    Z[S, L] = C(L-1) 2^(1-L) for the Catalan number C."""
    grammar = Grammar(1, 1, ((0, 0, 0),), ((0, 0),), binary_weights=(3.0,))
    table, rate = grammars.partition(grammar, 12)
    for length in range(1, 13):
        expected = special.comb(2 * length - 2, length - 1) / length * 2.0 ** (1 - length)
        assert table[0, length] * np.exp(rate * length) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("variables", "terminals", "binary_rules", "terminal_rules"),
    [(20, 16, 1, 2), (20, 16, 1, 1), (20, 16, 3, 2), (2, 2, 4, 1), (64, 64, 1, 1), (90, 5, 2, 5)],
)
@pytest.mark.parametrize("seed", range(4))
def test_drawn_grammars(variables, terminals, binary_rules, terminal_rules, seed) -> None:
    arguments = (variables, terminals, binary_rules, terminal_rules, seed)
    grammar = grammars.draw(*arguments)
    graph = networkx.DiGraph([(a, x) for a, b, c in grammar.binary for x in (b, c)])
    assert set(graph) == set(range(variables))
    assert networkx.is_strongly_connected(graph)
    assert grammars.productive(grammar) == set(range(variables))
    assert {token for _, token in grammar.terminal} == set(range(terminals))
    assert len(set(grammar.binary)) == len(grammar.binary) == variables * binary_rules
    assert len(set(grammar.terminal)) == len(grammar.terminal) == variables * terminal_rules
    weights = grammars.critical(grammar)
    assert grammars.spectral_radius(grammar, weights) == pytest.approx(1)
    np.testing.assert_allclose(weights, grammar.binary_weights, rtol=1e-9)
    assert (grammars.partition(grammar, 64)[0][:, 1:] > 0).all(), "every length, every variable"
    assert grammar == grammars.draw.__wrapped__(*arguments)
    assert grammar != grammars.draw(*arguments[:-1], seed + 1)
