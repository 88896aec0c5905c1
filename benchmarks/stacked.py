"""A step of five stacked members against one, and against the loop, at T = 50 on a GPU.

python -m benchmarks.stacked
"""

from __future__ import annotations

import statistics
import time

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
    """Median of the steps after the first 30, which capture."""
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


def main() -> None:
    model = Transformer(depth=2, width=256, heads=4, rope_base=500_000.0)
    for precision in ("float32", "bf16"):
        config = SGD(model=model, precision=precision, micro_tokens=10_000_000)
        for n in (64, 128, 512):
            times = {
                (type(kind).__name__, members): milliseconds(
                    kind.build(TASK, SEEDS[:members], DEVICE), n
                )
                for members in (1, 5)
                for kind in (config, Stacked(training=config))
            }
            ratio = times["Stacked", 5] / times["Stacked", 1]
            print(
                f"{precision} batch {n}: stacked 5 {times['Stacked', 5]:.2f} ms, 1 "
                f"{times['Stacked', 1]:.2f} ms, ratio {ratio:.2f}; loop 5 {times['SGD', 5]:.2f} ms"
            )


if __name__ == "__main__":
    main()
