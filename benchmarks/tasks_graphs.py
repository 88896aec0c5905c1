"""Graph instances per second, points and label together, beside networkx, igraph and ortools.

Run by `python -m benchmarks.tasks`.
"""

from __future__ import annotations

from collections.abc import Callable

import igraph
import networkx
import numpy as np
import torch
from ortools.graph.python.max_flow import SimpleMaxFlow

from algocapture.tasks import MinCut, ShortestPath
from benchmarks.timing import interleaved, show

SIZES = (16, 64, 256)
NODES = 1 << 18  # of ours per call, whatever the size
PEER_NODES = 1 << 12  # of the peers, which are slower

Pairs = tuple[np.ndarray, np.ndarray]
Label = Callable[[int, Pairs], float]


def run() -> None:
    print(f"threads: {torch.get_num_threads()}")
    for size in SIZES:
        for task, peers in ((ShortestPath(), SHORTEST), (MinCut(), CUTS)):
            compare(task, size, peers)


def compare(task: ShortestPath | MinCut, size: int, peers: dict[str, Label]) -> None:
    n, fewer = NODES // size, max(2, PEER_NODES // size)
    ours = torch.Generator().manual_seed(0)
    draws = np.random.default_rng(0)
    radius = task.radius(size)
    contenders: dict[str, Callable[[], object]] = {
        "algocapture": lambda: task.sample(size, n, ours)
    }
    for name, label in peers.items():
        contenders[name] = lambda label=label: [
            label(size, joined(draws.uniform(-1, 1, (size, 2)), radius)) for _ in range(fewer)
        ]
    work = dict.fromkeys(contenders, fewer) | {"algocapture": n}
    show(f"{type(task).__name__}, T={size}", "instance", work, interleaved(contenders))


def joined(points: np.ndarray, radius: float) -> Pairs:
    """Faster than a k-d tree at these sizes."""
    squares = ((points[:, None] - points[None]) ** 2).sum(-1)
    i, j = np.nonzero(squares <= radius**2)
    return i[i < j], j[i < j]


def networkx_graph(size: int, pairs: Pairs) -> networkx.Graph:
    graph = networkx.empty_graph(size)
    graph.add_edges_from(zip(*(side.tolist() for side in pairs), strict=True), capacity=1)
    return graph


def networkx_path(size: int, pairs: Pairs) -> float:
    try:
        return networkx.shortest_path_length(networkx_graph(size, pairs), 0, size - 1)
    except networkx.NetworkXNoPath:
        return 0


def igraph_path(size: int, pairs: Pairs) -> float:
    return igraph.Graph(size, np.stack(pairs, 1).tolist()).distances(0, size - 1)[0][0]


# Undirected unit capacities give the value of the directed construction.


def networkx_cut(size: int, pairs: Pairs) -> float:
    return networkx.maximum_flow_value(networkx_graph(size, pairs), 0, size - 1)


def igraph_cut(size: int, pairs: Pairs) -> float:
    return igraph.Graph(size, np.stack(pairs, 1).tolist()).maxflow_value(0, size - 1)


def ortools_cut(size: int, pairs: Pairs) -> float:
    tails, heads = np.concatenate(pairs), np.concatenate(pairs[::-1])
    flow = SimpleMaxFlow()
    flow.add_arcs_with_capacity(tails, heads, np.ones(len(tails), np.int64))
    flow.solve(0, size - 1)
    return flow.optimal_flow()


SHORTEST: dict[str, Label] = {"networkx": networkx_path, "igraph": igraph_path}
CUTS: dict[str, Label] = {
    "networkx": networkx_cut,
    "igraph": igraph_cut,
    "ortools": ortools_cut,
}
