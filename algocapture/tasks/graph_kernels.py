"""Exact solvers of the graph tasks on the CPU: from coordinates to labels in one pass.

Points are linked through a grid of cells no smaller than the edge radius, so that a graph costs
its points and edges. Arcs lie in pairs, 2k for i -> j and 2k + 1 for j -> i, so that the reverse
of an arc is `arc ^ 1`. Squared distances are float32 sums in the order of the axes, without fused
multiply-add: bit for bit those of `RandomGeometricGraph.edges`.
"""

from __future__ import annotations

import numpy as np

from algocapture.tasks.compiled import compiled

NONE = -1


@compiled
def is_edge(points, i, j, limit, side, torus):  # type: ignore[no-untyped-def]
    total = np.float32(0)
    for k in range(points.shape[1]):
        t = abs(points[i, k] - points[j, k])
        if torus:
            t = min(t, side - t)
        total += t * t
    return total <= limit


@compiled
def cell_of(x, side, axis_cells):  # type: ignore[no-untyped-def]
    place = (x / side + 0.5) * axis_cells
    if not place >= 0:  # so that NaN is never cast
        return 0
    return int(place) if place < axis_cells else axis_cells - 1


@compiled
def scratch(length):  # type: ignore[no-untyped-def]
    return np.empty(length, np.int32)


@compiled
def grow(array):  # type: ignore[no-untyped-def]
    longer = np.empty(2 * len(array), array.dtype)
    longer[: len(array)] = array
    return longer


@compiled
def gather(row, column, newest, before, torus, found):  # type: ignore[no-untyped-def]
    """Points already in the cell or the cells around it, into `found`; how many.

    A torus has one cell along an axis or at least three, so that none is visited twice.
    """
    rows, columns = newest.shape
    around_row, around_column = int(rows > 1), int(columns > 1)
    count = 0
    for r in range(row - around_row, row + around_row + 1):
        for c in range(column - around_column, column + around_column + 1):
            inside = torus or (0 <= r < rows and 0 <= c < columns)
            j = newest[r % rows, c % columns] if inside else NONE
            while j != NONE:
                found[count] = j
                count += 1
                j = before[j]
    return count


@compiled
def link(points, limit, side, torus, cells, first, heads, nexts):  # type: ignore[no-untyped-def]
    """Arcs of one graph as linked lists: `first[node]`, then `nexts[arc]`, ending in NONE."""
    size, dimension = points.shape
    rows = cells if dimension > 1 else 1
    newest = np.full((rows, cells), NONE, np.int32)  # the last point put into each cell
    before = np.empty(size, np.int32)  # the point put into the same cell before this one
    found = np.empty(size, np.int32)
    first[:] = NONE
    arcs = 0
    for i in range(size):
        column = cell_of(points[i, 0], side, cells)
        row = cell_of(points[i, 1], side, rows) if dimension > 1 else 0
        count = gather(row, column, newest, before, torus, found)
        while arcs + 2 * count > len(heads):
            heads, nexts = grow(heads), grow(nexts)
        for place in range(count):
            j = found[place]
            if is_edge(points, i, j, limit, side, torus):
                heads[arcs], nexts[arcs], first[i] = j, first[i], arcs
                heads[arcs + 1], nexts[arcs + 1], first[j] = i, first[j], arcs + 1
                arcs += 2
        before[i] = newest[row, column]
        newest[row, column] = i
    return arcs, heads, nexts


@compiled
def distance(first, heads, nexts, queue, depth):  # type: ignore[no-untyped-def]
    """Edges on a shortest path from the first node to the last; 0 if there is none."""
    target = len(first) - 1
    depth[:] = NONE
    depth[0], queue[0] = 0, 0
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
def augment(first, heads, nexts, flow, queue, via):  # type: ignore[no-untyped-def]
    """Push one unit along a shortest residual path; False if the target is cut off.

    `flow` is the net flow of an arc, minus that of its reverse. Capacity is 1, but 0 into the
    source and out of the target; the search enters neither arc, since it starts at the source
    and ends at the target, so a relay's residual 1 - flow is the only rule needed.
    """
    target = len(first) - 1
    via[:] = NONE
    queue[0] = 0
    done, found = 0, 1
    while done < found and via[target] == NONE:
        arc = first[queue[done]]
        done += 1
        while arc != NONE:
            other = heads[arc]
            if other != 0 and via[other] == NONE and flow[arc] < 1:
                via[other] = arc
                queue[found] = other
                found += 1
            arc = nexts[arc]
    if via[target] == NONE:
        return False
    node = target
    while node != 0:
        arc = via[node]
        flow[arc] += 1
        flow[arc ^ 1] -= 1
        node = heads[arc ^ 1]
    return True


@compiled
def shortest_paths(points, limit, side, torus, cells, out):  # type: ignore[no-untyped-def]
    n, size, _ = points.shape
    first, queue, depth = scratch(size), scratch(size), scratch(size)
    heads, nexts = scratch(16 * size), scratch(16 * size)
    for g in range(n):
        _, heads, nexts = link(points[g], limit, side, torus, cells, first, heads, nexts)
        out[g] = distance(first, heads, nexts, queue, depth)


@compiled
def min_cuts(points, limit, side, torus, cells, out):  # type: ignore[no-untyped-def]
    """Flow value by augmenting paths; at most the smaller degree of source and target of them."""
    n, size, _ = points.shape
    first, queue, via = scratch(size), scratch(size), scratch(size)
    heads, nexts = scratch(16 * size), scratch(16 * size)
    for g in range(n):
        arcs, heads, nexts = link(points[g], limit, side, torus, cells, first, heads, nexts)
        flow = np.zeros(arcs, np.int8)
        most = min(degree(0, first, nexts), degree(size - 1, first, nexts))
        value = 0
        while value < most and augment(first, heads, nexts, flow, queue, via):
            value += 1
        out[g] = value
