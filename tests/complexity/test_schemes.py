"""Schemes agree with the tasks' solvers, keep to their budget, count what they say."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from algocapture.complexity.schemes import SCHEMES, UNLIMITED, Scheme, find, schemes_of
from algocapture.complexity.schemes.graphs import Builder
from algocapture.rng import Seed
from algocapture.tasks import (
    Grammar,
    GrammarRecognition,
    Induction,
    MinCut,
    ShortestPath,
    Sorting,
    StringMatch,
    Task,
)
from algocapture.types import torch_generator
from tests.cases import TASKS, TaskCase

CASES = [(case, scheme) for case in TASKS for scheme in schemes_of(case.task)]
every_case = pytest.mark.parametrize(
    ("case", "scheme"), CASES, ids=[f"{case}-{scheme.name}" for case, scheme in CASES]
)


def draws(*names: str | int) -> torch.Generator:
    return torch_generator(Seed(6).child(*names))


def test_every_task_has_two_schemes() -> None:
    for case in TASKS:
        assert len(schemes_of(case.task)) >= 2, case
    assert len({scheme.name for scheme in SCHEMES}) == len(SCHEMES)


@every_case
def test_answers_are_the_solvers(case: TaskCase, scheme: Scheme) -> None:
    """1,000 instances over all sizes of the case."""
    for size in case.sizes:
        batch = case.task.sample(size, -(-1000 // len(case.sizes)), draws(size))
        done = scheme.run(case.task, batch.inputs)
        assert done.finished.all()
        assert (done.operations > 0).sum() >= (size > 1) * len(batch)
        scored = case.task.scored(batch)
        assert torch.equal(done.answers[scored], case.task.solve(batch.inputs)[scored])
        assert torch.equal(done.answers[scored], batch.targets[scored])


@every_case
def test_no_budget_is_exceeded(case: TaskCase, scheme: Scheme) -> None:
    """Finished exactly if an unlimited run needs no more; never an operation beyond the budget."""
    for size in case.sizes[-2:]:
        inputs = case.task.sample(size, 3, draws(size)).inputs
        full = scheme.run(case.task, inputs)
        edges = itertools.chain.from_iterable((n - 1, n) for n in full.operations.tolist())
        spread = np.linspace(0, full.operations.max() + 1, 60).astype(int).tolist()
        for budget in {*edges, *spread} - {-1}:
            held = scheme.run(case.task, inputs, budget)
            assert (held.operations <= budget).all()
            assert held.finished.tolist() == (full.operations <= budget).tolist()
            kept = held.finished
            assert (held.operations[kept] == full.operations[kept]).all()
            assert torch.equal(held.answers[kept], full.answers[kept])


def test_arguments() -> None:
    scheme, inputs = find("linear scan"), torch.zeros(1, 4, dtype=torch.int64)
    with pytest.raises(ValueError, match="solves Induction, got Sorting"):
        scheme.run(Sorting(), inputs)
    for budget in (-1, 2.5, True):
        with pytest.raises(ValueError, match=f"budget must be an integer >= 0, got {budget}"):
            scheme.run(Induction(), inputs, budget)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected token ids"):
        scheme.run(Induction(), inputs.float())
    with pytest.raises(ValueError, match="did you mean Dinic"):
        find("dinic")


# Operations by hand or in closed form.


def operations(name: str, task: Task, inputs: list[list[int]]) -> list[int]:
    return find(name).run(task, torch.tensor(inputs)).operations.tolist()


def test_induction_by_hand() -> None:
    tokens = [5, 3, 7, 1, 3]
    assert operations("linear scan", Induction(vocab=8), [tokens]) == [2 + 2]
    # ten slots cleared; slots 5 3 7 1 3 (mod 10 of a multiple of 1 mod 10): no collision
    assert operations("hash table", Induction(vocab=8), [tokens]) == [10 + 5]
    assert operations("hash table", Induction(vocab=16), [[5, 15, 7, 1, 15]]) == [10 + 5 + 2]


@pytest.mark.parametrize("levels", [1, 2, 3, 4])
def test_merge_sort_in_closed_form(levels: int) -> None:
    """Sorted input: every merge compares until the left run is used up, half of its moves."""
    n = 2**levels
    ordered = [*range(n), n, *range(n - 1)]
    assert operations("merge sort", Sorting(vocab=n), [ordered]) == [n * levels + n // 2 * levels]


def test_counting_sort_in_closed_form() -> None:
    batch = Sorting(vocab=7).sample(20, 5, draws())
    assert set(operations("counting sort", Sorting(vocab=7), batch.inputs.tolist())) == {2 * 27}


@pytest.mark.parametrize(
    ("text", "pattern", "naive", "kmp"),
    [
        # border of aab: a=a, then b!=a twice (falling back once): 3; then the text
        ([0, 0, 0, 0], [0, 0, 1], 3 + 3, 3 + 2 + 1 + 1 + 1 + 1),
        ([2, 2, 2], [0, 1, 2], 1, 2 + 3),
        ([0, 1, 2, 3], [0, 1, 2], 3, 2 + 3),
    ],
)
def test_string_matching_by_hand(text: list[int], pattern: list[int], naive: int, kmp: int) -> None:
    task, one = StringMatch(alphabet=4), [*text, 4, *pattern]
    assert operations("naive", task, [one]) == [naive]
    assert operations("Knuth-Morris-Pratt", task, [one]) == [kmp]


@pytest.mark.parametrize("size", [3, 10, 31])
def test_cyk_in_closed_form(size: int) -> None:
    task = GrammarRecognition()
    grammar, batch = task.grammar, task.sample(size, 4, draws())
    wanted = len(grammar.binary) * (size**3 - size) // 6 + len(grammar.terminal) * size
    assert set(operations("CYK", task, batch.inputs.tolist())) == {wanted}


ONE = GrammarRecognition(
    rules=Grammar(variables=1, terminals=1, binary=((0, 0, 0),), terminal=((0, 0),))
)


@pytest.mark.parametrize("size", [1, 2, 5, 12])
def test_parsers_in_closed_form(size: int) -> None:
    """S -> S S, S -> a: every span exists, so every split of every span is met.

    Lists: a terminal rule a position, a rule for each of n (n-1)/2 spans that end before n, and
    C(n+1, 3) joins. Earley: one prediction a position up to n, one scan a position, and for a span
    from i the items that wait at i: one predicted, and one from each origin o < i, for every one
    of the n - i ends.
    """
    n = size
    joins = (n + 1) * n * (n - 1) // 6
    word = [[0] * n]
    assert operations("CYK by lists", ONE, word) == [n + n * (n - 1) // 2 + joins]
    advanced = sum((n - i) * (1 + i) for i in range(n))
    assert operations("Earley", ONE, word) == [n + 1 + n + advanced]


@pytest.mark.parametrize(
    "task",
    [
        ShortestPath(),
        ShortestPath(torus=True),
        MinCut(dimension=3, torus=True, coordinates="radius"),
        MinCut(dimension=1),
    ],
    ids=repr,
)
@pytest.mark.parametrize("size", [2, 5, 70])
def test_graphs_are_the_tasks(task: ShortestPath, size: int) -> None:
    """Edges by the cell list against all pairs; distances tested are paid for."""
    inputs = task.sample(size, 5, draws(size)).inputs
    joined = task.edges(inputs)
    builder = Builder(task, inputs)
    for i in range(len(inputs)):
        graph = builder.graph(i, UNLIMITED)
        found = torch.zeros(size, size, dtype=torch.bool)
        nodes = np.repeat(np.arange(size), np.diff(graph.offsets))
        found[nodes, graph.heads] = True
        assert torch.equal(found, joined[i])
        assert len(graph.heads) == found.sum()
        assert (nodes[graph.reverse] == graph.heads).all()
        assert (graph.heads[graph.reverse] == nodes).all()
        cells = builder.rows * builder.columns
        tested = graph.spent - 3 * size - cells - 2 * len(graph.heads)
        assert tested == _looked_at(inputs[i].numpy(), builder, task)


def _looked_at(points: np.ndarray, builder: Builder, task: ShortestPath) -> int:
    """Pairs of points (each with itself too) whose cells touch."""
    shape = (builder.columns, builder.rows)[: min(task.dimension, 2)]
    places = [
        np.clip(((points[:, k] / np.float32(builder.side) + 0.5) * cells).astype(int), 0, cells - 1)
        for k, cells in enumerate(shape)
    ]
    close = np.ones((len(points), len(points)), bool)
    for place, cells in zip(places, shape, strict=True):
        apart = np.abs(place[:, None] - place[None, :])
        close &= (np.minimum(apart, cells - apart) if task.torus else apart) <= 1
    return int(close.sum())


def test_searches_on_a_line_by_hand() -> None:
    """Five points in a row, 0 - 1 - 2 - 3 - 4, and what each search looks at."""
    task = ShortestPath(dimension=1, mean_degree=2.0)  # radius 2 * 2 / (5 * 2) = 0.4
    inputs = torch.tensor([[[-0.6], [-0.3], [0.0], [0.3], [0.6]]])
    built = Builder(task, inputs).graph(0, UNLIMITED).spent
    spent = {s.name: int(s.run(task, inputs).operations[0]) - built for s in schemes_of(task)}
    # labels 5; nodes 0, 1, 2, 3 are taken with 1 + 2 + 2 + 2 arcs
    assert spent["breadth-first search"] == 5 + 4 + 7
    # labels 10; 0 and 4 with an arc each, then 1 with two; 3 meets 2 at its first arc
    assert spent["bidirectional search"] == 10 + (1 + 1) + (1 + 1) + (1 + 2) + (1 + 2)
    # five nodes taken, 1 + 2 + 2 + 2 arcs, a distance for each of four; a heap of one needs nothing
    assert spent["A* by straight lines"] == 5 + 5 + 7 + 4


def test_flows_on_a_line_by_hand() -> None:
    task = MinCut(dimension=1, mean_degree=2.0)
    inputs = torch.tensor([[[-0.6], [-0.3], [0.0], [0.3], [0.6]]])
    built = Builder(task, inputs).graph(0, UNLIMITED).spent
    spent = {s.name: int(s.run(task, inputs).operations[0]) - built for s in schemes_of(task)}
    # capacities of 8 arcs; labels 5 and nodes 0-3 with 7 arcs, a path of 4; then 0 alone
    assert spent["augmenting paths"] == 8 + (5 + 4 + 7 + 4) + (5 + 1 + 1)
    # the same search; 5 pointers; down 1 + 2 + 2 + 2 arcs and a path of 4; the source's arc again
    assert spent["Dinic"] == 8 + (5 + 4 + 7) + 5 + (7 + 4) + 1 + (5 + 1 + 1)
    # heights 5 and nodes 4-1 with 7 arcs; levels 5, the source's arc; nodes 1, 2, 3 look at 2 arcs
    assert spent["push-relabel"] == 8 + (5 + 4 + 7) + 5 + 1 + (2 + 2 + 2)
