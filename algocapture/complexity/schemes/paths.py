"""Shortest paths by the number of edges: breadth-first, from both ends, and A*."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import Tensor

from algocapture.complexity.schemes.base import Answer, Scheme, Solver
from algocapture.complexity.schemes.graphs import Builder
from algocapture.tasks.compiled import compiled
from algocapture.tasks.shortest_path import ShortestPath

UNSEEN = -1
BELOW = 1 - 1e-6  # float32 rounds edges up to 1e-7 beyond the radius: the heuristic stays below


@compiled
def breadth_first(offsets, heads, source, target, spent, budget):  # type: ignore[no-untyped-def]
    """T labels cleared; one operation for a node taken from the queue and one for an arc."""
    size = len(offsets) - 1
    if spent + size > budget:
        return 0, spent, False
    spent += size
    depth, queue = np.full(size, UNSEEN, np.int64), np.empty(size, np.int64)
    depth[source], queue[0] = 0, source
    done, found = 0, 1
    while done < found:
        node = queue[done]
        done += 1
        cost = 1 + offsets[node + 1] - offsets[node]
        if spent + cost > budget:
            return 0, spent, False
        spent += cost
        for other in heads[offsets[node] : offsets[node + 1]]:
            if depth[other] == UNSEEN:
                depth[other] = depth[node] + 1
                queue[found] = other
                found += 1
        if depth[target] != UNSEEN:
            return depth[target], spent, True
    return 0, spent, True


@compiled
def both_ends(offsets, heads, source, target, spent, budget):  # type: ignore[no-untyped-def]
    """Whole levels, from the end with the smaller front or else fewer levels; 2 T labels cleared.

    No earlier level met the other side's, so the path is longer than both depths together: the
    first meeting of a level is one of the shortest.
    """
    size = len(offsets) - 1
    if spent + 2 * size > budget:
        return 0, spent, False
    spent += 2 * size
    depth = np.full((2, size), UNSEEN, np.int64)
    queue = np.empty((2, size), np.int64)
    done, found, levels = np.zeros(2, np.int64), np.ones(2, np.int64), np.zeros(2, np.int64)
    depth[0, source] = depth[1, target] = 0
    queue[0, 0], queue[1, 0] = source, target
    while done[0] < found[0] and done[1] < found[1]:
        ahead = found[1] - done[1] - found[0] + done[0]
        end = int(ahead < 0 or (ahead == 0 and levels[1] < levels[0]))
        level = queue[end, done[end] : found[end]].copy()
        done[end] = found[end]
        levels[end] += 1
        for node in level:
            cost = 1 + offsets[node + 1] - offsets[node]
            if spent + cost > budget:
                return 0, spent, False
            spent += cost
            met = _discover(offsets, heads, node, depth, queue, found, end)
            if met > 0:
                return met, spent, True
    return 0, spent, True


@compiled
def _discover(offsets, heads, node, depth, queue, found, end):  # type: ignore[no-untyped-def]
    """New neighbours of a node; the length of a path if one of them is known to the other end."""
    for other in heads[offsets[node] : offsets[node + 1]]:
        if depth[end, other] != UNSEEN:
            continue
        depth[end, other] = depth[end, node] + 1
        if depth[1 - end, other] != UNSEEN:
            return depth[0, other] + depth[1, other]
        queue[end, found[end]] = other
        found[end] += 1
    return 0


@compiled
def _ahead(points, node, target, radius, side, torus):  # type: ignore[no-untyped-def]
    """No path is shorter than the straight line in radii."""
    total = 0.0
    for k in range(points.shape[1]):
        t = abs(np.float64(points[node, k]) - np.float64(points[target, k]))
        if torus:
            t = min(t, side - t)
        total += t * t
    return np.sqrt(total) / radius * BELOW


@compiled
def _sift_up(keys, nodes, at, most):  # type: ignore[no-untyped-def]
    """Restore a heap whose last entry is new: comparisons made, or -1 if they exceed `most`."""
    compared = 0
    while at > 0:
        above = (at - 1) // 2
        if compared >= most:
            return -1
        compared += 1
        if keys[above] <= keys[at]:
            break
        keys[above], keys[at] = keys[at], keys[above]
        nodes[above], nodes[at] = nodes[at], nodes[above]
        at = above
    return compared


@compiled
def _sift_down(keys, nodes, count, most):  # type: ignore[no-untyped-def]
    """Restore a heap whose first entry is new: comparisons made, or -1 if they exceed `most`."""
    compared, at = 0, 0
    while 2 * at + 1 < count:
        below = 2 * at + 1
        both = below + 1 < count
        if compared + 1 + both > most:
            return -1
        compared += 1 + both
        if both and keys[below + 1] < keys[below]:
            below += 1
        if keys[at] <= keys[below]:
            break
        keys[below], keys[at] = keys[at], keys[below]
        nodes[below], nodes[at] = nodes[at], nodes[below]
        at = below
    return compared


@compiled
def _relax(node, other, ahead, depth, keys, nodes, count, most):  # type: ignore[no-untyped-def]
    """Put a neighbour into the heap at its new depth; as the sifts."""
    depth[other] = depth[node] + 1
    keys[count], nodes[count] = depth[other] + ahead, other
    return _sift_up(keys, nodes, count, most)


@compiled
def a_star(points, radius, side, torus, offsets, heads, source, target, spent, budget):  # type: ignore[no-untyped-def]
    """Best first by depth + straight line: T labels cleared; one operation for a node taken, for
    an arc, for a distance to the target, and for a comparison in the heap.

    The straight line is consistent, so a node's depth is final when it is taken from the heap.
    """
    size = len(offsets) - 1
    if spent + size > budget:
        return 0, spent, False
    spent += size
    depth, closed = np.full(size, UNSEEN, np.int64), np.zeros(size, np.bool_)
    keys, nodes = np.empty(1 + len(heads)), np.empty(1 + len(heads), np.int64)
    depth[source], keys[0], nodes[0], count = 0, 0.0, source, 1
    while count:
        node, count = nodes[0], count - 1
        keys[0], nodes[0] = keys[count], nodes[count]
        compared = _sift_down(keys, nodes, count, budget - spent - 1)
        if compared < 0 or spent >= budget:
            return 0, spent, False
        spent += 1 + compared
        if node == target:
            return depth[node], spent, True
        first, stop = offsets[node], offsets[node + (not closed[node])]
        closed[node] = True
        for arc in range(first, stop):
            other = heads[arc]
            better = depth[other] == UNSEEN or depth[other] > depth[node] + 1
            if spent + 1 + better > budget:
                return 0, spent, False
            spent += 1 + better
            if not better:
                continue
            ahead = _ahead(points, other, target, radius, side, torus)
            compared = _relax(node, other, ahead, depth, keys, nodes, count, budget - spent)
            if compared < 0:
                return 0, spent, False
            spent, count = spent + compared, count + 1
    return 0, spent, True


def _after_building(
    task: ShortestPath, inputs: Tensor, search: Callable[..., tuple[Answer, int, bool]]
) -> Solver:
    builder = Builder(task, inputs)

    def solve(i: int, budget: int) -> tuple[Answer, int, bool]:
        graph = builder.graph(i, budget)
        if not graph.finished:
            return 0, graph.spent, False
        ends = graph.offsets, graph.heads, 0, len(graph.offsets) - 2
        return search(builder, i, *ends, graph.spent, budget)

    return solve


def _breadth_first(task: ShortestPath, inputs: Tensor) -> Solver:
    return _after_building(task, inputs, lambda builder, i, *rest: breadth_first(*rest))


def _both_ends(task: ShortestPath, inputs: Tensor) -> Solver:
    return _after_building(task, inputs, lambda builder, i, *rest: both_ends(*rest))


def _a_star(task: ShortestPath, inputs: Tensor) -> Solver:
    return _after_building(
        task,
        inputs,
        lambda builder, i, *rest: a_star(
            builder.points[i], builder.radius, builder.side, builder.torus, *rest
        ),
    )


PATHS = (
    Scheme("breadth-first search", ShortestPath, "as the cell list; a node or an arc looked at",
           "1 at constant mean degree: V + E", _breadth_first, 1.0, True),
    Scheme("bidirectional search", ShortestPath, "as the cell list; a node or an arc looked at",
           "1: the cell list alone is V + E", _both_ends, 1.0, True),
    Scheme("A* by straight lines", ShortestPath,
           "as the cell list; a node, arc, distance or comparison in the heap",
           "1 with a logarithm for the heap", _a_star, None, True),
)  # fmt: skip
