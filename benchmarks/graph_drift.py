"""How the graph ensembles change with size: the table of docs/tasks/graphs.md.

python -m benchmarks.graph_drift
"""

from __future__ import annotations

import torch

from algocapture.tasks import MinCut, ShortestPath
from algocapture.tasks.base import label_statistics

SIZES = (10, 20, 40, 80, 160, 320, 1_000)
BASE = 10  # labels never seen at this size are new to an output head
VARIANTS: dict[str, dict] = {
    "default": {},
    "mean_degree=4.512": {"mean_degree": 4.512},
    "boundary_corrected": {"boundary_corrected": True},
    "torus": {"torus": True},
    "connected": {"connected": True},
    "log, mean_degree=1.2": {"degree_law": "log", "mean_degree": 1.2},
}


def main() -> None:
    for kind in (ShortestPath, MinCut):
        print(f"\n### {kind.__name__}\n")
        for name, fields in VARIANTS.items():
            print(f"\n**{name}**\n")
            rows(kind(**fields))


def rows(task: ShortestPath | MinCut) -> None:
    print(
        "| T | true mean degree | reachable | entropy (bits) | unseen at 10 | baselines' errors |"
    )
    print("|---|---|---|---|---|---|")
    draws = torch.Generator().manual_seed(0)
    seen = task.sample(BASE, 50_000, draws).targets.unique()
    for size in SIZES:
        n = max(2_000, min(20_000, 4_000_000 // size))
        targets = task.sample(size, n, draws).targets
        errors = task.baselines(size, n, draws)
        print(
            f"| {size:,} | {task.true_mean_degree(size):.2f} "
            f"| {(targets > 0).double().mean():.1%} "
            f"| {label_statistics(targets)['entropy_bits']:.2f} "
            f"| {(~torch.isin(targets, seen)).double().mean():.1%} | "
            + ", ".join(f"{name} {error:.0%}" for name, error in errors.items())
            + " |"
        )


if __name__ == "__main__":
    main()
