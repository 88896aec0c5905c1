"""What a noisy Gram does to predictions: the table of docs/kernels.md.

    python -m benchmarks.noisy_gram        # a minute on one core

16 inputs of 4 tokens with random signs as answers, 16 other inputs, one block read at the mean.
Each line is 40 seeds of the Gram against one of 2^16 draws at the same ridge.
"""

from __future__ import annotations

import numpy as np
import torch

from algocapture.kernels import InfiniteTransformer
from algocapture.learners import KernelPredictor

SEEDS = 40


def main() -> None:
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(16, 4, 8, generator=generator, dtype=torch.float64)
    test = torch.randn(16, 4, 8, generator=generator, dtype=torch.float64)
    y = torch.randn(16, generator=generator).sign().numpy()
    print(
        "| ridge | draws | part of the exact prediction | off on average | error bar | true error |"
    )
    print("|---|---|---|---|---|---|")
    for ridge in (1e-4, 1.0):
        exact = fitted(x, y, ridge, 2**16, seed=10**6).predict(test)
        for samples in (32, 128, 512):
            print(line(x, y, test, exact, ridge, samples), flush=True)


def fitted(
    x: torch.Tensor, y: np.ndarray, ridge: float, samples: int, seed: int
) -> KernelPredictor:
    kernel = InfiniteTransformer(1, "gelu", 1.7, 0.2, readout="mean")
    return KernelPredictor(kernel, ridge=ridge, samples=samples, random_state=seed).fit(x, y)


def line(
    x: torch.Tensor,
    y: np.ndarray,
    test: torch.Tensor,
    exact: np.ndarray,
    ridge: float,
    samples: int,
) -> str:
    runs = [fitted(x, y, ridge, samples, seed).predict_with_error(test) for seed in range(SEEDS)]
    means = np.stack([mean for mean, _ in runs])
    bars = np.stack([bar for _, bar in runs])
    size = np.sqrt(np.mean(exact**2))
    kept = means @ exact / (exact @ exact)  # 1: neither shrunk nor blown up
    margin = 1.96 * kept.std(ddof=1) / SEEDS**0.5
    # The square of the mean's distance holds the mean's own noise, which is taken off.
    noise = means.var(0, ddof=1).mean() / SEEDS
    bias = np.sqrt(max(0.0, np.mean((means.mean(0) - exact) ** 2) - noise)) / size
    bar, true = (np.sqrt(np.mean(of**2)) / size for of in (bars, means - exact))
    return (
        f"| {ridge:g} | {samples} | {kept.mean():.3f} [{kept.mean() - margin:.3f}, "
        f"{kept.mean() + margin:.3f}] | {bias:.1%} | {bar:.1%} | {true:.1%} |"
    )


if __name__ == "__main__":
    main()
