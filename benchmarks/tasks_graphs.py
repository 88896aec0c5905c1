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
Peer = Callable[[int, float, np.random.Generator], float]  # size, radius, draws -> label


def run() -> None:
    print(f"threads: {torch.get_num_threads()}")
    for size in SIZES:
        for task, peers in ((ShortestPath(), SHORTEST), (MinCut(), CUTS)):
            compare(task, size, peers)


def compare(task: ShortestPath | MinCut, size: int, peers: dict[str, Peer]) -> None:
    n, fewer = NODES // size, max(2, PEER_NODES // size)
    ours = torch.Generator().manual_seed(0)
    draws = np.random.default_rng(0)
    radius = task.radius(size)
    contenders: dict[str, Callable[[], object]] = {
        "algocapture": lambda: task.sample(size, n, ours)
    }
    for name, label in peers.items():
        contenders[name] = lambda label=label: [label(size, radius, draws) for _ in range(fewer)]
    work = dict.fromkeys(contenders, fewer) | {"algocapture": n}
    show(f"{type(task).__name__}, T={size}", "instance", work, interleaved(contenders))


def joined(size: int, radius: float, draws: np.random.Generator) -> Pairs:
    """Faster than a k-d tree at these sizes."""
    x, y = draws.uniform(-1, 1, (2, size))
    squares = (x[:, None] - x) ** 2 + (y[:, None] - y) ** 2
    i, j = np.nonzero(squares <= radius**2)
    return i[i < j], j[i < j]


def networkx_graph(size: int, radius: float, draws: np.random.Generator) -> networkx.Graph:
    graph = networkx.empty_graph(size)
    pairs = zip(*(side.tolist() for side in joined(size, radius, draws)), strict=True)
    graph.add_edges_from(pairs, capacity=1)
    return graph


def networkx_path(size: int, radius: float, draws: np.random.Generator) -> float:
    try:
        return networkx.shortest_path_length(networkx_graph(size, radius, draws), 0, size - 1)
    except networkx.NetworkXNoPath:
        return 0


# igraph has a generator of its own, on the unit square; it sorts the points, so ends are drawn.


def igraph_path(size: int, radius: float, draws: np.random.Generator) -> float:
    ends = draws.integers(size), draws.integers(size)
    return igraph.Graph.GRG(size, radius / 2).distances(*ends)[0][0]


# Undirected unit capacities give the value of the directed construction.


def igraph_cut(size: int, radius: float, draws: np.random.Generator) -> float:
    source = int(draws.integers(size))
    target = (source + int(draws.integers(1, size))) % size
    return igraph.Graph.GRG(size, radius / 2).maxflow_value(source, target)


def networkx_cut(size: int, radius: float, draws: np.random.Generator) -> float:
    return networkx.maximum_flow_value(networkx_graph(size, radius, draws), 0, size - 1)


def ortools_cut(size: int, radius: float, draws: np.random.Generator) -> float:
    pairs = joined(size, radius, draws)
    tails, heads = np.concatenate(pairs), np.concatenate(pairs[::-1])
    flow = SimpleMaxFlow()
    flow.add_arcs_with_capacity(tails, heads, np.ones(len(tails), np.int64))
    flow.solve(0, size - 1)
    return flow.optimal_flow()


SHORTEST: dict[str, Peer] = {"networkx": networkx_path, "igraph": igraph_path}
CUTS: dict[str, Peer] = {
    "networkx": networkx_cut,
    "igraph": igraph_cut,
    "ortools": ortools_cut,
}
