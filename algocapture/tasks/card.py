"""A task card: what a task's instances are like at one size, as plain data."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from algocapture.config import ConfigError, nearest, registered, to_json
from algocapture.tasks.base import Task
from algocapture.tasks.geometric import RandomGeometricGraph
from algocapture.types import Batch

MOST_POSITIONS = 1 << 24  # instances times size of the statistics: memory and patience


def catalogue() -> list[dict[str, Any]]:
    """Name, first line of the docstring and fields of every registered task."""
    return [
        {"task": name, "about": about(cls), "fields": fields(cls())}
        for name, cls in sorted(registered(Task).items())  # type: ignore[type-abstract]
    ]


def find(name: str) -> type[Task]:
    """The registered task of that name; upper and lower case are one."""
    known = registered(Task)  # type: ignore[type-abstract]
    for candidate, cls in known.items():
        if candidate.lower() == name.lower():
            return cls
    raise ConfigError(f"there is no task {name!r}{nearest(name, known)}")


def about(cls: type) -> str:
    return (cls.__doc__ or "").strip().split("\n")[0]


def fields(task: Task) -> dict[str, Any]:
    return {name: value for name, value in to_json(task).items() if name != "type"}


def card(
    task: Task, size: int, n: int, generator: torch.Generator, statistics: int = 1024
) -> dict[str, Any]:
    """`n` instances, and the task's statistics and baselines over `statistics` others.

    Of very large instances there are fewer, at least 16.
    """
    batch = task.sample(size, n, generator)
    statistics = min(statistics, max(16, MOST_POSITIONS // batch.size))
    return {
        "task": type(task).__name__,
        "about": about(type(task)),
        "fields": fields(task),
        "size": size,
        "exponents": dataclasses.asdict(task.exponents) if task.exponents else None,
        "instances": [portrait(task, batch[i : i + 1]) for i in range(n)],
        "statistics": {"instances": statistics} | task.describe(size, statistics, generator),
        "baselines": task.baselines(size, statistics, generator),
    }


def portrait(task: Task, one: Batch) -> dict[str, Any]:
    """One instance: its symbols with their roles, its answer, and for a graph the picture."""
    answer = one.targets[task.scored(one)].tolist()
    found = {
        "symbols": task.symbols(one.inputs[0]),
        "answer": answer if one.targets.ndim > 1 else answer[0],
    }
    if isinstance(task, RandomGeometricGraph) and task.dimension == 2:
        pairs = task.edges(one.inputs)[0].triu(1).nonzero().tolist()
        found["graph"] = {"points": one.inputs[0].tolist(), "edges": pairs}
    return found
