"""Minimum cuts as maximum flows: augmenting paths, Dinic's layers, push and relabel.

Residual capacities: 1 either way between relays; 1 from the source and into the target, 0 back.
Every scheme clears its labels and sets the capacities, which it pays for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import Tensor

from algocapture.complexity.schemes.base import Scheme, Solver
from algocapture.complexity.schemes.graphs import Builder
from algocapture.tasks.compiled import compiled
from algocapture.tasks.min_cut import MinCut

NONE = -1


@compiled
def _capacities(offsets, heads, source, target):  # type: ignore[no-untyped-def]
    residual = np.ones(len(heads), np.int64)
    for arc in range(offsets[target], offsets[target + 1]):
        residual[arc] = 0
    for arc in range(len(heads)):
        if heads[arc] == source:
            residual[arc] = 0
    return residual


@compiled
def _augment(offsets, heads, reverse, residual, source, target, via, queue, budget):  # type: ignore[no-untyped-def]
    """One unit along a shortest residual path: (operations, pushed), operations -1 if the budget
    does not cover them. Labels cleared, nodes taken, arcs looked at and arcs pushed count."""
    spent = len(via)
    if spent > budget:
        return -1, False
    via[:] = NONE
    queue[0], done, found = source, 0, 1
    while done < found and via[target] == NONE:
        node = queue[done]
        done += 1
        spent += 1 + offsets[node + 1] - offsets[node]
        if spent > budget:
            return -1, False
        for arc in range(offsets[node], offsets[node + 1]):
            other = heads[arc]
            if residual[arc] > 0 and via[other] == NONE and other != source:
                via[other] = arc
                queue[found] = other
                found += 1
    if via[target] == NONE:
        return spent, False
    node = target
    while node != source:
        if spent >= budget:
            return -1, False
        spent += 1
        arc = via[node]
        residual[arc] -= 1
        residual[reverse[arc]] += 1
        node = heads[reverse[arc]]
    return spent, True


@compiled
def augmenting_paths(offsets, heads, reverse, source, target, spent, budget):  # type: ignore[no-untyped-def]
    """Edmonds and Karp: a breadth-first search for each unit, and one that finds no path."""
    size = len(offsets) - 1
    if spent + len(heads) > budget:
        return 0, spent, False
    spent += len(heads)
    residual = _capacities(offsets, heads, source, target)
    via, queue = np.empty(size, np.int64), np.empty(size, np.int64)
    flow = 0
    while True:
        cost, pushed = _augment(
            offsets, heads, reverse, residual, source, target, via, queue, budget - spent
        )
        if cost < 0:
            return 0, spent, False
        spent += cost
        if not pushed:
            return flow, spent, True
        flow += 1


@compiled
def _layers(offsets, heads, residual, source, target, level, queue, budget):  # type: ignore[no-untyped-def]
    """Breadth-first levels in the residual graph; operations as `_augment`."""
    spent = len(level)
    if spent > budget:
        return -1
    level[:] = NONE
    level[source], queue[0], done, found = 0, source, 0, 1
    while done < found and level[target] == NONE:
        node = queue[done]
        done += 1
        spent += 1 + offsets[node + 1] - offsets[node]
        if spent > budget:
            return -1
        for arc in range(offsets[node], offsets[node + 1]):
            if residual[arc] > 0 and level[heads[arc]] == NONE:
                level[heads[arc]] = level[node] + 1
                queue[found] = heads[arc]
                found += 1
    return spent


@compiled
def _descend(offsets, heads, reverse, residual, source, target, level, at, path, budget):  # type: ignore[no-untyped-def]
    """Push one unit down the layers, from the arcs where earlier searches stopped; as `_augment`.

    One operation for an arc looked at and for an arc pushed.
    """
    node, depth, spent = source, 0, 0
    while node != target:
        if at[node] == offsets[node + 1]:
            if node == source:
                return spent, False
            level[node] = NONE  # a dead end, never entered again
            depth -= 1
            node = heads[reverse[path[depth]]]
            at[node] += 1
            continue
        if spent >= budget:
            return -1, False
        spent += 1
        arc = at[node]
        if residual[arc] > 0 and level[heads[arc]] == level[node] + 1:
            path[depth] = arc
            depth += 1
            node = heads[arc]
        else:
            at[node] += 1
    if spent + depth > budget:
        return -1, False
    for arc in path[:depth]:
        residual[arc] -= 1
        residual[reverse[arc]] += 1
    return spent + depth, True


@compiled
def dinic(offsets, heads, reverse, source, target, spent, budget):  # type: ignore[no-untyped-def]
    """A blocking flow in the layers of shortest paths, until the target has no layer; T pointers
    are set for each."""
    size = len(offsets) - 1
    if spent + len(heads) > budget:
        return 0, spent, False
    spent += len(heads)
    residual = _capacities(offsets, heads, source, target)
    level, queue = np.empty(size, np.int64), np.empty(size, np.int64)
    path, flow = np.empty(size, np.int64), 0
    while True:
        cost = _layers(offsets, heads, residual, source, target, level, queue, budget - spent)
        if cost < 0:
            return 0, spent, False
        spent += cost
        if level[target] == NONE:
            return flow, spent, True
        if spent + size > budget:
            return 0, spent, False
        spent += size
        at, pushed = offsets[:-1].copy(), True
        while pushed:
            cost, pushed = _descend(
                offsets, heads, reverse, residual, source, target, level, at, path, budget - spent
            )
            if cost < 0:
                return 0, spent, False
            spent, flow = spent + cost, flow + pushed


@compiled
def _heights(offsets, heads, reverse, residual, source, target, height, queue, budget):  # type: ignore[no-untyped-def]
    """Residual distances to the target; T where there is no way, and at the source."""
    size = len(height)
    spent = size
    if spent > budget:
        return -1
    height[:] = size
    height[target], queue[0], done, found = 0, target, 0, 1
    while done < found:
        node = queue[done]
        done += 1
        spent += 1 + offsets[node + 1] - offsets[node]
        if spent > budget:
            return -1
        for arc in range(offsets[node], offsets[node + 1]):
            other = heads[arc]
            if residual[reverse[arc]] > 0 and height[other] == size and other != source:
                height[other] = height[node] + 1
                queue[found] = other
                found += 1
    return spent


@compiled
def _relabel(offsets, heads, residual, node, height, levels):  # type: ignore[no-untyped-def]
    """Lift a node just above its lowest residual neighbour; by the gap rule, if it leaves its level
    empty, everything above that level to T: the target is out of its reach."""
    size, lowest = len(height), len(height)
    for arc in range(offsets[node], offsets[node + 1]):
        if residual[arc] > 0:
            lowest = min(lowest, height[heads[arc]] + 1)
    before = height[node]
    height[node] = lowest
    levels[before] -= 1
    levels[lowest] += 1
    if levels[before] > 0:
        return
    for other in range(size):
        if before < height[other] < size:
            levels[height[other]] -= 1
            levels[size] += 1
            height[other] = size


@compiled
def _discharge(  # type: ignore[no-untyped-def]
    node, offsets, heads, reverse, residual, height, levels, excess, at, queue, end, budget
):
    """Push a node's excess downhill: (operations or -1, the queue's end)."""
    size, spent = len(height), 0
    while excess[node] > 0 and height[node] < size:
        if at[node] == offsets[node + 1]:
            at[node] = offsets[node]
            gap = levels[height[node]] == 1  # the rule looks at every node
            spent += offsets[node + 1] - offsets[node] + size * gap
            if spent > budget:
                return -1, end
            _relabel(offsets, heads, residual, node, height, levels)
            continue
        if spent >= budget:
            return -1, end
        spent += 1
        arc, other = at[node], heads[at[node]]
        if residual[arc] == 0 or height[node] != height[other] + 1:
            at[node] += 1
            continue
        residual[arc] -= 1
        residual[reverse[arc]] += 1
        excess[node] -= 1
        excess[other] += 1
        if excess[other] == 1 and height[other] > 0:  # the target, at 0, keeps what it gets
            queue[end % size] = other
            end += 1
    return spent, end


@compiled
def push_relabel(offsets, heads, reverse, source, target, spent, budget):  # type: ignore[no-untyped-def]
    """First in, first out, from exact heights, with the gap rule; excess that cannot reach the
    target stays where it is, as the value of the cut does not need its way back.

    One operation for an arc looked at; T for labels and for each gap.
    """
    size = len(offsets) - 1
    if spent + len(heads) > budget:
        return 0, spent, False
    spent += len(heads)
    residual = _capacities(offsets, heads, source, target)
    height, queue = np.empty(size, np.int64), np.empty(size, np.int64)
    cost = _heights(
        offsets, heads, reverse, residual, source, target, height, queue, budget - spent
    )
    if cost < 0 or spent + cost + size + offsets[source + 1] - offsets[source] > budget:
        return 0, spent, False
    spent += cost + size + offsets[source + 1] - offsets[source]
    levels, excess = np.zeros(size + 1, np.int64), np.zeros(size, np.int64)
    for node in range(size):
        levels[height[node]] += 1
    begin, end = 0, 0
    for arc in range(offsets[source], offsets[source + 1]):
        residual[arc] -= 1
        residual[reverse[arc]] += 1
        excess[heads[arc]] += 1
        if heads[arc] != target:
            queue[end] = heads[arc]
            end += 1
    at = offsets[:-1].copy()
    while begin < end:
        node = queue[begin % size]
        begin += 1
        cost, end = _discharge(
            node, offsets, heads, reverse, residual, height, levels, excess, at, queue, end,
            budget - spent,
        )  # fmt: skip
        if cost < 0:
            return 0, spent, False
        spent += cost
    return excess[target], spent, True


def _after_building(
    task: MinCut, inputs: Tensor, flow: Callable[..., tuple[int, int, bool]]
) -> Solver:
    builder = Builder(task, inputs)

    def solve(i: int, budget: int) -> tuple[int, int, bool]:
        graph = builder.graph(i, budget)
        if not graph.finished:
            return 0, graph.spent, False
        arcs = graph.offsets, graph.heads, graph.reverse
        return flow(*arcs, 0, len(graph.offsets) - 2, graph.spent, budget)

    return solve


def _augmenting_paths(task: MinCut, inputs: Tensor) -> Solver:
    return _after_building(task, inputs, augmenting_paths)


def _dinic(task: MinCut, inputs: Tensor) -> Solver:
    return _after_building(task, inputs, dinic)


def _push_relabel(task: MinCut, inputs: Tensor) -> Solver:
    return _after_building(task, inputs, push_relabel)


FLOWS = (
    Scheme("augmenting paths", MinCut, "as the cell list; a label, node or arc",
           "1 at constant degree: a flow of at most the source's degree",
           _augmenting_paths, 1.0, True),
    Scheme("Dinic", MinCut, "as the cell list; a label, node or arc",
           "1 at constant degree: no more phases than units of flow, each O(E)", _dinic, 1.0, True),
    Scheme("push-relabel", MinCut, "as the cell list; a label, node or arc",
           "at most 3; no bound of O(T) is known to us for it", _push_relabel, None, True),
)  # fmt: skip
