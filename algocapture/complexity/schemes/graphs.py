"""From points to a graph, counted: what every graph scheme pays before it searches.

A cell list finds the edges in O(T) at fixed mean degree. Written for itself, not the tasks' own
kernel, so that a scheme and a solver can be compared; squared distances are float32 sums in the
same order, since the tasks define edges by these very numbers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from torch import Tensor

from algocapture.complexity.schemes.base import Integers
from algocapture.tasks.compiled import compiled
from algocapture.tasks.geometric import RandomGeometricGraph

WIDER = 1.001  # cells are wider than the radius by more than float32 rounds


class Graph(NamedTuple):
    """Arcs of node i are offsets[i]..offsets[i + 1]; `reverse` is the arc the other way."""

    offsets: Integers
    heads: Integers
    reverse: Integers
    spent: int
    finished: bool


@compiled
def _cells_of(points, side, rows, columns, cell):  # type: ignore[no-untyped-def]
    for i in range(len(points)):
        column = min(max(int((points[i, 0] / side + 0.5) * columns), 0), columns - 1)
        row = 0
        if rows > 1:
            row = min(max(int((points[i, 1] / side + 0.5) * rows), 0), rows - 1)
        cell[i] = row * columns + column


@compiled
def _sorted_by(keys, buckets, items):  # type: ignore[no-untyped-def]
    """Counting sort: bucket k holds items[start[k]:start[k + 1]], in order."""
    start = np.zeros(buckets + 1, np.int64)
    for key in keys:
        start[key + 1] += 1
    for k in range(buckets):
        start[k + 1] += start[k]
    free = start[:-1].copy()
    for i in range(len(keys)):
        items[free[keys[i]]] = i
        free[keys[i]] += 1
    return start


@compiled
def _joined(points, i, j, limit, side, torus):  # type: ignore[no-untyped-def]
    total = np.float32(0)
    for k in range(points.shape[1]):
        t = abs(points[i, k] - points[j, k])
        if torus:
            t = min(t, side - t)
        total += t * t
    return total <= limit


@compiled
def _around(cell, rows, columns, torus, found):  # type: ignore[no-untyped-def]
    """The cells that may hold neighbours: at most nine, none twice (on a torus there is one cell
    along an axis or at least three)."""
    count = 0
    for down in range(-1, 2):
        for right in range(-1, 2):
            if (down != 0 and rows == 1) or (right != 0 and columns == 1):
                continue
            r, c = cell // columns + down, cell % columns + right
            if torus:
                r, c = r % rows, c % columns
            if 0 <= r < rows and 0 <= c < columns:
                found[count] = r * columns + c
                count += 1
    return count


@compiled
def _pairs(points, limit, side, torus, rows, columns, cell, start, items, spent, budget):  # type: ignore[no-untyped-def]
    """Edges i < j as rows; every point looked at in a cell around i is one operation."""
    pairs, edges = np.empty((8 * len(points), 2), np.int64), 0
    around = np.empty(9, np.int64)
    for i in range(len(points)):
        for n in range(_around(cell[i], rows, columns, torus, around)):
            first, stop = start[around[n]], start[around[n] + 1]
            if spent + stop - first > budget:
                return pairs[:edges], spent, False
            spent += stop - first
            if edges + stop - first > len(pairs):
                pairs = np.concatenate((pairs, np.empty_like(pairs), np.empty((stop, 2), np.int64)))
            for at in range(first, stop):
                pairs[edges, 0], pairs[edges, 1] = i, items[at]
                edges += items[at] > i and _joined(points, i, items[at], limit, side, torus)
    return pairs[:edges], spent, True


@compiled
def build(points, limit, side, torus, rows, columns, budget):  # type: ignore[no-untyped-def]
    """The graph of one instance, and the operations it took: three for a point, one for a cell,
    one for every distance tested, four for an edge."""
    size = len(points)
    cell, items = np.empty(size, np.int64), np.empty(size, np.int64)
    offsets = np.zeros(size + 1, np.int64)
    nothing = np.empty(0, np.int64)
    spent = 3 * size + rows * columns
    if spent > budget:
        return offsets, nothing, nothing, 0, False
    _cells_of(points, side, rows, columns, cell)
    start = _sorted_by(cell, rows * columns, items)
    pairs, spent, finished = _pairs(
        points, limit, side, torus, rows, columns, cell, start, items, spent, budget
    )
    if not finished or spent + 4 * len(pairs) > budget:
        return offsets, nothing, nothing, spent, False
    spent += 4 * len(pairs)
    for i, j in pairs:
        offsets[i + 1] += 1
        offsets[j + 1] += 1
    for i in range(size):
        offsets[i + 1] += offsets[i]
    heads, reverse = np.empty(2 * len(pairs), np.int64), np.empty(2 * len(pairs), np.int64)
    free = offsets[:-1].copy()
    for i, j in pairs:
        heads[free[i]], heads[free[j]] = j, i
        reverse[free[i]], reverse[free[j]] = free[j], free[i]
        free[i] += 1
        free[j] += 1
    return offsets, heads, reverse, spent, True


class Builder:
    """Graphs of a batch, one at a time."""

    def __init__(self, task: RandomGeometricGraph, inputs: Tensor) -> None:
        inputs = task.check_inputs(inputs)
        radius, side = task.scale(inputs.shape[1])
        self.points = inputs.detach().cpu().contiguous().numpy()
        self.radius, self.side, self.torus = radius, side, task.torus
        self.limit = np.float32(task.limit(radius))
        cells = _along(inputs.shape[1], task.dimension, side / radius, task.torus)
        self.columns, self.rows = cells, cells if task.dimension > 1 else 1

    def graph(self, i: int, budget: int) -> Graph:
        side = np.float32(self.side)
        found = build(self.points[i], self.limit, side, self.torus, self.rows, self.columns, budget)
        return Graph(*found)


def _along(size: int, dimension: int, sides: float, torus: bool) -> int:
    """Cells along an axis: no smaller than a radius, about one for a point."""
    most = size if dimension == 1 else math.isqrt(size)
    cells = max(1, min(int(sides / WIDER), most))
    return 1 if torus and cells < 3 else cells
