"""Exact solvers of the graph tasks on the CPU: from coordinates to labels in one pass.

Points are sorted into a grid of cells no smaller than the edge radius, so that a graph costs its
points and edges. Arcs lie in pairs, 2k for i -> j and 2k + 1 for j -> i, so that the reverse of
an arc is `arc ^ 1`. Squared distances are float32 sums in the order of the axes, without fused
multiply-add: bit for bit those of `RandomGeometricGraph.edges`.
"""

from __future__ import annotations

import numpy as np

from algocapture.tasks.compiled import compiled

NONE = -1
AHEAD = np.array([[0, 1], [1, -1], [1, 0], [1, 1]])  # row, column: each pair of cells once


@compiled
def scratch(length):  # type: ignore[no-untyped-def]
    return np.empty(length, np.int32)


@compiled
def grow(array):  # type: ignore[no-untyped-def]
    longer = np.empty(2 * len(array), array.dtype)
    longer[: len(array)] = array
    return longer


@compiled
def cell_of(x, side, cells):  # type: ignore[no-untyped-def]
    place = (x / side + 0.5) * cells
    if not place >= 0:  # so that NaN is never cast
        return 0
    return int(place) if place < cells else cells - 1


@compiled
def sort_by_cell(points, side, rows, columns, place, start, sorted_points):  # type: ignore[no-untyped-def]
    """Counting sort: cell k holds start[k]..start[k+1]; place[i] is where point i went."""
    size, dimension = points.shape
    start[:] = 0
    for i in range(size):
        row = cell_of(points[i, 1], side, rows) if rows > 1 else 0
        place[i] = row * columns + cell_of(points[i, 0], side, columns)
        start[place[i] + 1] += 1
    for cell in range(rows * columns):
        start[cell + 1] += start[cell]
    for i in range(size - 1, -1, -1):  # fill from the back, then start[k + 1] is start[k]
        start[place[i] + 1] -= 1
        place[i] = start[place[i] + 1]
        for k in range(dimension):
            sorted_points[place[i], k] = points[i, k]
    start[: rows * columns] = start[1:]
    start[rows * columns] = size


@compiled
def cells_ahead(cell, rows, columns, torus, start, ranges):  # type: ignore[no-untyped-def]
    """Points of the neighbouring cells, half of them, so that no pair is met twice.

    A torus has one cell along an axis or at least three, else both sides were the same cell.
    """
    count = 0
    for step in range(4):
        r, c = cell // columns + AHEAD[step, 0], cell % columns + AHEAD[step, 1]
        if (AHEAD[step, 0] != 0 and rows == 1) or (AHEAD[step, 1] != 0 and columns == 1):
            continue
        if torus:
            r, c = r % rows, c % columns
        if r < rows and 0 <= c < columns:
            ranges[count, 0] = start[r * columns + c]
            ranges[count, 1] = start[r * columns + c + 1]
            count += 1
    return count


@compiled
def near(points, i, low, high, limit, side, torus, found, count):  # type: ignore[no-untyped-def]
    """Append those of low..high that are joined to i; without a branch, since most are not."""
    for j in range(low, high):
        total = np.float32(0)
        for k in range(points.shape[1]):
            t = abs(points[i, k] - points[j, k])
            if torus:
                t = min(t, side - t)
            total += t * t
        found[count] = j
        count += total <= limit
    return count


@compiled
def link(points, limit, side, torus, rows, columns, start, found, first, heads, nexts):  # type: ignore[no-untyped-def]
    """Arcs of one graph as linked lists: `first[node]`, then `nexts[arc]`, ending in NONE."""
    first[:] = NONE
    arcs = 0
    ranges = np.empty((4, 2), np.int32)
    for cell in range(rows * columns):
        others = cells_ahead(cell, rows, columns, torus, start, ranges)
        for i in range(start[cell], start[cell + 1]):
            count = near(points, i, i + 1, start[cell + 1], limit, side, torus, found, 0)
            for k in range(others):
                low, high = ranges[k]
                count = near(points, i, low, high, limit, side, torus, found, count)
            while arcs + 2 * count > len(heads):
                heads, nexts = grow(heads), grow(nexts)
            for k in range(count):
                j = found[k]
                heads[arcs], nexts[arcs], first[i] = j, first[i], arcs
                heads[arcs + 1], nexts[arcs + 1], first[j] = i, first[j], arcs + 1
                arcs += 2
    return arcs, heads, nexts


@compiled
def distance(source, target, first, heads, nexts, queue, depth):  # type: ignore[no-untyped-def]
    """Edges on a shortest path; 0 if there is none."""
    depth[:] = NONE
    depth[source], queue[0] = 0, source
    done, found = 0, 1
    while done < found and depth[target] == NONE:
        node = queue[done]
        done += 1
        arc = first[node]
        while arc != NONE:
            other = heads[arc]
            if depth[other] == NONE:
                depth[other] = depth[node] + 1
                queue[found] = other
                found += 1
            arc = nexts[arc]
    return max(depth[target], 0)


@compiled
def degree(node, first, nexts):  # type: ignore[no-untyped-def]
    count = 0
    arc = first[node]
    while arc != NONE:
        count += 1
        arc = nexts[arc]
    return count


@compiled
def augment(source, target, first, heads, nexts, flow, queue, via):  # type: ignore[no-untyped-def]
    """Push one unit along a shortest residual path; False if the target is cut off.

    `flow` is the net flow of an arc, minus that of its reverse. Capacity is 1, but 0 into the
    source and out of the target; the search enters neither arc, since it starts at the source
    and ends at the target, so a relay's residual 1 - flow is the only rule needed.
    """
    via[:] = NONE
    queue[0] = source
    done, found = 0, 1
    while done < found and via[target] == NONE:
        arc = first[queue[done]]
        done += 1
        while arc != NONE:
            other = heads[arc]
            if other != source and via[other] == NONE and flow[arc] < 1:
                via[other] = arc
                queue[found] = other
                found += 1
            arc = nexts[arc]
    if via[target] == NONE:
        return False
    node = target
    while node != source:
        arc = via[node]
        flow[arc] += 1
        flow[arc ^ 1] -= 1
        node = heads[arc ^ 1]
    return True


@compiled
def min_cut(source, target, arcs, first, heads, nexts, queue, via):  # type: ignore[no-untyped-def]
    """Flow value by augmenting paths; at most the smaller degree of source and target of them."""
    flow = np.zeros(arcs, np.int8)
    most = min(degree(source, first, nexts), degree(target, first, nexts))
    value = 0
    while value < most and augment(source, target, first, heads, nexts, flow, queue, via):
        value += 1
    return value


@compiled
def solve_all(points, limit, side, torus, cells, cut, out):  # type: ignore[no-untyped-def]
    """Labels of many graphs: minimum cuts, or else shortest paths."""
    n, size, dimension = points.shape
    rows, columns = cells if dimension > 1 else 1, cells
    start, found = scratch(rows * columns + 1), scratch(size + 1)
    place, first, queue, seen = scratch(size), scratch(size), scratch(size), scratch(size)
    heads, nexts = scratch(16 * size), scratch(16 * size)
    sorted_points = np.empty((size, dimension), np.float32)
    for g in range(n):
        sort_by_cell(points[g], side, rows, columns, place, start, sorted_points)
        arcs, heads, nexts = link(
            sorted_points, limit, side, torus, rows, columns, start, found, first, heads, nexts
        )
        s, t = place[0], place[size - 1]
        if cut:
            out[g] = min_cut(s, t, arcs, first, heads, nexts, queue, seen)
        else:
            out[g] = distance(s, t, first, heads, nexts, queue, seen)


def shortest_paths(points, limit, side, torus, cells, out):  # type: ignore[no-untyped-def]
    solve_all(points, limit, side, torus, cells, False, out)


def min_cuts(points, limit, side, torus, cells, out):  # type: ignore[no-untyped-def]
    solve_all(points, limit, side, torus, cells, True, out)
