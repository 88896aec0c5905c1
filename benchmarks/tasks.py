"""How fast instances are made, beside the same task in numpy and in plain torch.

python -m benchmarks.tasks
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from algocapture.tasks import Induction, Sorting
from benchmarks.timing import interleaved, show

SIZES = (50, 1_000, 10_000)
TOKENS = 1_000_000  # per call and contender, whatever the size

Rows = Callable[[], object]


def main() -> None:
    for size in SIZES:
        n = TOKENS // size
        for title, contenders in sequences(size, n).items():
            seconds = interleaved(contenders)
            show(f"{title}, T={size}, n={n}", "token", dict.fromkeys(seconds, n * size), seconds)


def sequences(size: int, n: int) -> dict[str, dict[str, Rows]]:
    ours = torch.Generator().manual_seed(0)
    draws = np.random.default_rng(0)
    return {
        "Induction": {
            "algocapture": lambda: Induction().sample(size, n, ours),
            "plain torch": lambda: induction_torch(size, n, ours),
            "numpy": lambda: induction_numpy(size, n, draws),
        },
        "Sorting": {
            "algocapture": lambda: Sorting().sample(size, n, ours),
            "plain torch": lambda: sorting_torch(size, n, ours),
            "numpy": lambda: sorting_numpy(size, n, draws),
        },
    }


def induction_torch(size: int, n: int, draws: torch.Generator) -> object:
    x = torch.randint(1024, (n, size), generator=draws)
    c = torch.randint(1024, (n, 1), generator=draws)
    x = torch.where(x == c, (x + 1) % 1024, x)
    first = torch.randint((size + 1) // 2, (n,), generator=draws)
    rows = torch.arange(n)
    x[rows, first] = x[:, -1] = c[:, 0]
    return x, x[rows, first + 1]


def induction_numpy(size: int, n: int, draws: np.random.Generator) -> object:
    x = draws.integers(1024, size=(n, size))
    c = draws.integers(1024, size=(n, 1))
    x = np.where(x == c, (x + 1) % 1024, x)
    first = draws.integers((size + 1) // 2, size=n)
    rows = np.arange(n)
    x[rows, first] = x[:, -1] = c[:, 0]
    return x, x[rows, first + 1]


def sorting_torch(size: int, n: int, draws: torch.Generator) -> object:
    u = torch.randint(100, (n, size), generator=draws)
    s = u.sort(1).values
    separator = torch.full((n, 1), 100)
    return torch.cat([u, separator, s[:, :-1]], 1), torch.cat([u[:, 1:], separator, s], 1)


def sorting_numpy(size: int, n: int, draws: np.random.Generator) -> object:
    u = draws.integers(100, size=(n, size))
    s = np.sort(u, axis=1)
    separator = np.full((n, 1), 100)
    return np.concatenate([u, separator, s[:, :-1]], 1), np.concatenate([u[:, 1:], separator, s], 1)


if __name__ == "__main__":
    main()
