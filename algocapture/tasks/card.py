"""A task card: what a task's instances are like at one size, as plain data."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from algocapture.config import ConfigError, nearest, registered, to_json
from algocapture.tasks.base import Task


def catalogue() -> list[dict[str, Any]]:
    """Name, first line of the docstring and fields of every registered task."""
    return [
        {"task": name, "about": about(cls), "fields": defaults(cls)}
        for name, cls in registered(Task).items()  # type: ignore[type-abstract]
    ]


def about(cls: type) -> str:
    return (cls.__doc__ or "").strip().split("\n")[0]


def defaults(cls: type) -> dict[str, Any]:
    task = to_json(cls())
    return {f.name: task[f.name] for f in dataclasses.fields(cls) if f.init}


def find(name: str) -> type[Task]:
    """The registered task of that name; upper and lower case are one."""
    known = registered(Task)  # type: ignore[type-abstract]
    for candidate, cls in known.items():
        if candidate.lower() == name.lower():
            return cls
    raise ConfigError(f"there is no task {name!r}{nearest(name, known)}")


def card(
    task: Task, size: int, n: int, generator: torch.Generator, statistics: int = 1024
) -> dict[str, Any]:
    """`n` instances, and the task's statistics and baselines over `statistics` others."""
    batch = task.sample(size, n, generator)
    return {
        "task": to_json(task),
        "about": about(type(task)),
        "size": size,
        "exponents": dataclasses.asdict(task.exponents) if task.exponents else None,
        "instances": [
            {"symbols": task.symbols(batch.inputs[i]), "answer": plain(batch.targets[i])}
            for i in range(n)
        ],
        "statistics": {"instances": statistics} | task.describe(size, statistics, generator),
        "baselines": task.baselines(size, statistics, generator),
    }


def plain(values: Tensor) -> Any:
    """Numbers as JSON has them."""
    return values.tolist()
