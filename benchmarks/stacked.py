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
            times = {}
            for members in (1, 5):
                seeds = [Seed(0).child(m) for m in range(members)]
                for kind in (config, Stacked(training=config)):
                    learner = kind.build(TASK, seeds, DEVICE)
                    times[type(kind).__name__, members] = milliseconds(learner, n)
            ratio = times["Stacked", 5] / times["Stacked", 1]
            print(
                f"{precision} batch {n}: stacked 5 {times['Stacked', 5]:.2f} ms, 1 "
                f"{times['Stacked', 1]:.2f} ms, ratio {ratio:.2f}; loop 5 {times['SGD', 5]:.2f} ms"
            )


if __name__ == "__main__":
    main()
