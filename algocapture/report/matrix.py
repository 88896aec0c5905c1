"""Tasks x architectures: the verdicts of many runs as one table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from algocapture.report.rows import plain
from algocapture.report.summary import Summary
from algocapture.report.tables import LABELS, flat, signed

Config = dict[str, str]


def matrix(summaries: Sequence[Summary]) -> dict[str, Any] | None:
    """Rows of tasks, columns of architectures, cells of runs; None if one cell held them all."""
    tasks = [flat(s.identity.get("task") or {}, "task.") for s in summaries]
    models = [flat(architecture(s.identity.get("learner")), "model.") for s in summaries]
    rows, columns = labels(tasks, "task"), labels(models, "model")
    if len(set(rows)) * len(set(columns)) < 2:
        return None
    cells: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for i, (s, row, column) in enumerate(zip(summaries, rows, columns, strict=True)):
        cells.setdefault((row, column), []).append(_cell(s, i + 1))
    across = list(dict.fromkeys(columns))
    down = [
        {"task": row, "cells": [cells.get((row, column), []) for column in across]}
        for row in dict.fromkeys(rows)
    ]
    return {"architectures": across, "rows": down}


def outcome(s: Summary) -> str:
    """One word: that of the verdict, or "none"."""
    verdict, _ = s.judged
    return verdict.outcome if verdict else "none"


def architecture(learner: Any) -> dict[str, Any]:
    """What is trained, without how: the model of a learner, or a kernel learner itself."""
    for name in ("training", "model"):  # of a stacked population, of SGD
        if isinstance(learner, dict) and isinstance(learner.get(name), dict):
            learner = learner[name]
    return learner if isinstance(learner, dict) else {}


def labels(configs: Sequence[Config], kind: str) -> list[str]:
    """A short name for each: its type, and the fields in which those of its type differ."""
    found = []
    for own in configs:
        same = [other for other in configs if other.get(kind) == own.get(kind)]
        fields = list(dict.fromkeys(f for held in same for f in held if f != kind))
        told = [f for f in fields if len({held.get(f) for held in same}) > 1]
        differing = [f"{f.removeprefix(f'{kind}.')}={own[f]}" for f in told if f in own]
        name = own.get(kind, "?").removeprefix("user:")
        found.append(plain(" ".join([name, *differing]), 120))
    return found


def _cell(s: Summary, place: int) -> dict[str, Any]:
    verdict, _ = s.judged
    word = outcome(s)
    remark = f"δ = {s.delta:g}"
    if verdict is not None:
        remark += f", κ {signed(verdict.interval[0])} to {signed(verdict.interval[1])}"
    return {
        "place": place,
        "outcome": word,
        "label": LABELS[word] + ("" if s.complete else " (unfinished)"),
        "remark": remark,
    }
