"""Every scheme under its task's own measure: operations, exponents, delta-implementations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from algocapture.complexity.epths import quantiles, trials, truncated
from algocapture.complexity.schemes import SCHEMES, Scheme
from algocapture.config import register
from algocapture.stats.findings import Chart, Findings, Row
from algocapture.stats.power import Exponent, power_law
from algocapture.studies.base import Study, check_sizes
from algocapture.tasks import (
    GrammarRecognition,
    Induction,
    MinCut,
    ShortestPath,
    Sorting,
    StringMatch,
    Task,
)
from algocapture.types import torch_generator

AMBIGUITY = "ambiguity"
# Fixed mean degree means fixed: without the correction it drifts with T.
TASKS: dict[type[Task], tuple[Task, str]] = {
    Induction: (Induction(), "sequence"),
    Sorting: (Sorting(), "sequence"),
    StringMatch: (StringMatch(), "sequence"),
    GrammarRecognition: (GrammarRecognition(), "grammar"),
    ShortestPath: (ShortestPath(boundary_corrected=True), "graph"),
    MinCut: (MinCut(boundary_corrected=True), "graph"),
}
BARS = {"merge sort": (1.0, 1.2)}


@register
@dataclass(frozen=True)
class Epths(Study):
    """Sizes by kind of task; `instances` for the means and again for each truncation."""

    sequence: tuple[int, ...] = (1024, 2048, 4096, 8192, 16384)
    graph: tuple[int, ...] = (256, 512, 1024, 2048, 4096)
    grammar: tuple[int, ...] = (12, 24, 48, 96)  # what takes T^3 steps
    sparse: tuple[int, ...] = (16, 32, 64, 128, 256)  # parsers that follow what is derived
    instances: int = 400
    deltas: tuple[float, ...] = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.instances < 2:
            raise ValueError(f"instances must be >= 2, got {self.instances!r}")
        if not all(0 < delta < 1 for delta in self.deltas):
            raise ValueError(f"deltas must lie in (0, 1), got {self.deltas!r}")
        for kind in ("sequence", "graph", "grammar", "sparse"):
            group = "grammar" if kind == "sparse" else kind
            least = max(task.spec.smallest for task, of in TASKS.values() if of == group)
            check_sizes(kind, getattr(self, kind), least, 3)

    def parts(self) -> tuple[str, ...]:
        return (*map(part_of, SCHEMES), AMBIGUITY)

    def measure(self, part: str) -> list[Row]:
        if part == AMBIGUITY:
            return self._ambiguity()
        scheme = next(s for s in SCHEMES if part_of(s) == part)
        return [row for size in self._sizes(scheme) for row in self._size(scheme, part, size)]

    def _sizes(self, scheme: Scheme) -> tuple[int, ...]:
        kind = TASKS[scheme.task][1]
        if kind == "grammar" and scheme.exponent is None:
            kind = "sparse"
        sizes: tuple[int, ...] = getattr(self, kind)
        return sizes

    def _size(self, scheme: Scheme, part: str, size: int) -> list[Row]:
        task, seed = TASKS[scheme.task][0], self.seed(part)
        free = trials(scheme, task, size, self.instances, torch_generator(seed.child("free", size)))
        spent, mean = free.operations, float(free.operations.mean())
        row: Row = {
            "scheme": scheme.name,
            "task": scheme.task.__name__,
            "T": size,
            "right": float(free.right.mean()),
            "operations": mean,
            "stderr": float(spent.std(ddof=1) / np.sqrt(len(spent))),
            "largest": int(spent.max()),
            "needed": quantiles(spent, self.deltas),
        }
        for delta in self.deltas:
            generator = torch_generator(seed.child("truncated", size, str(delta)))
            cut = truncated(scheme, task, size, self.instances, generator, mean=mean, delta=delta)
            row[f"cut {delta:g}"] = [cut.budget, cut.right, cut.low]
        return [row]

    def _ambiguity(self) -> list[Row]:
        """Parse trees of a member: log10 of their number, and how often there is just one."""
        task, rows = GrammarRecognition(), []
        for size in self.sparse:
            generator = torch_generator(self.seed(AMBIGUITY).child(size))
            trees = task.parses(task.members(size, self.instances, generator)).log10()
            rows.append(
                {
                    "T": size,
                    "log10 trees": float(trees.mean()),
                    "median": float(trees.median()),
                    "one tree": float((trees < 0.15).double().mean()),
                }
            )
        return rows

    def findings(self, rows: Mapping[str, list[Row]]) -> Findings:
        held = [row for part, of in rows.items() if part != AMBIGUITY for row in of]
        cuts = [cut for row in held for cut in self._cuts(row)]
        schemes = [s for s in SCHEMES if any(row["scheme"] == s.name for row in held)]
        by = {s.name: [row for row in held if row["scheme"] == s.name] for s in schemes}
        growth = tuple(_growth(s, by[s.name]) for s in schemes)
        eta = tuple(self._eta(s, by[s.name][-1]) for s in schemes)
        missed = [cut for cut in cuts if not cut["holds"]]
        wrong = [row for row in held if row["right"] < 1]
        columns = ("scheme", "task", "T", "operations", "stderr", "largest")
        operations = [{name: row[name] for name in columns} for row in held]
        charts = tuple(
            Chart(f"epths-{kind.__name__}", f"{kind.__name__}: operations",
                  kind.__name__, "T", "operations", "T", "scheme", "stderr")
            for kind in TASKS
        )  # fmt: skip
        tables = {kind.__name__: [r for r in operations if r["task"] == kind.__name__]
                  for kind in TASKS}  # fmt: skip
        notes = (
            f"{len(cuts) - len(missed)} of {len(cuts)} truncations at mean/delta are right with "
            "probability > 1 - delta (one-sided 95% bound, fresh instances).",
            f"Without a budget {len(wrong)} of {len(held)} measurements hold a wrong answer.",
        )
        return Findings(
            "Schemes: operations under the tasks' own measures",
            tables | {"truncations": cuts, AMBIGUITY: list(rows[AMBIGUITY])},
            growth + eta,
            charts,
            notes,
        )

    def _cuts(self, row: Row) -> list[Row]:
        out = []
        for delta in self.deltas:
            budget, right, low = row[f"cut {delta:g}"]
            out.append(
                {
                    "scheme": row["scheme"],
                    "task": row["task"],
                    "T": row["T"],
                    "delta": delta,
                    "budget": budget,
                    "success": right / self.instances,
                    "low": low,
                    "holds": low > 1 - delta,
                }
            )
        return out

    def _eta(self, scheme: Scheme, row: Row) -> Exponent:
        """How the steps that suffice for 1 - delta grow with 1/delta, at the largest size."""
        needed = row["needed"]
        return power_law(
            [1 / delta for delta in self.deltas],
            needed,
            f"{scheme.name}: power of 1/delta in eta",
            theory="at most 1 (Markov)",
        )


def _growth(scheme: Scheme, rows: list[Row]) -> Exponent:
    errors = [row["stderr"] for row in rows]
    bar = BARS.get(scheme.name)
    if bar is None and scheme.exponent is not None:
        bar = (scheme.exponent - 0.1, scheme.exponent + 0.1)
    return power_law(
        [row["T"] for row in rows],
        [row["operations"] for row in rows],
        f"{scheme.name}: exponent of T",
        stderr=errors if min(errors) > 0 else None,
        theory=scheme.theory,
        bar=bar,
    )


def part_of(scheme: Scheme) -> str:
    """A part's name: lower-case letters, digits and dashes."""
    plain = "".join(c if c.isalnum() else " " for c in f"{scheme.task.__name__} {scheme.name}")
    return "-".join(plain.lower().split())
