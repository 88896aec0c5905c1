"""A step of five stacked members against one, and against the loop, at T = 50 on a GPU.

python -m benchmarks.stacked
"""

from __future__ import annotations

import statistics
import time
from dataclasses import replace

import torch

from algocapture.learners import SGD, Learner, Stacked
from algocapture.models import Transformer
from algocapture.rng import Seed
from algocapture.tasks import Induction
from algocapture.types import torch_generator

TASK = Induction()
DEVICE = torch.device("cuda")
SEEDS = [Seed(0).child(m) for m in range(5)]


def milliseconds(learner: Learner, n: int, size: int = 50, steps: int = 60) -> float:
    """Median of the steps after the first 30, which compile and capture."""
    generator = torch_generator(Seed(0), DEVICE)
    batches = [TASK.sample(size, n, generator) for _ in range(learner.members)]
    taken = []
    for _ in range(30 + steps):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        learner.step(batches)
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - begun)
    return 1000 * statistics.median(taken[30:])


def learners() -> dict[tuple[str, int], Learner]:
    """Compiled, captured only, and the loop, of one member and of five."""
    model = Transformer(depth=2, width=256, heads=4, rope_base=500_000.0)
    plain = SGD(model=model, precision="bf16", micro_tokens=10_000_000)
    kinds = {
        "compiled": Stacked(training=replace(plain, compile=True)),
        "captured": Stacked(training=plain),
        "loop": plain,
    }
    return {
        (kind, members): config.build(TASK, SEEDS[:members], DEVICE)
        for kind, config in kinds.items()
        for members in (1, 5)
    }


def main() -> None:
    made = learners()
    for n in (64, 128, 512):
        times = {key: milliseconds(learner, n) for key, learner in made.items()}
        for kind in ("compiled", "captured", "loop"):
            five, one = times[kind, 5], times[kind, 1]
            print(
                f"batch {n} {kind}: 5 in {five:.2f} ms, 1 in {one:.2f} ms, ratio {five / one:.2f}"
            )


if __name__ == "__main__":
    main()
