"""The sequence tasks, beside the few lines of plain torch or numpy that one would write instead.

The peers for strings keep less: near misses and matches may fall on each other, and a negative
with a stray match is drawn again as a whole.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from algocapture.tasks import Induction, Sorting, StringMatch
from benchmarks.timing import interleaved, show

SIZES = (50, 1_000, 10_000)
TOKENS = 1_000_000  # per call and contender, whatever the size

Rows = Callable[[], object]


def run() -> None:
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
        "StringMatch": {
            "algocapture": lambda: StringMatch().sample(size, n, ours),
            "plain torch": lambda: strings_torch(size, n, ours),
            "numpy": lambda: strings_numpy(size, n, draws),
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


def strings_torch(size: int, n: int, draws: torch.Generator) -> object:
    pattern = torch.randint(26, (n, 3), generator=draws)
    label = torch.arange(n) % 2
    text = torch.empty((n, size), dtype=torch.int64)
    todo = torch.arange(n)
    while len(todo):
        near = pattern[todo]
        at = torch.arange(len(todo))
        wrong = torch.randint(3, (len(todo),), generator=draws)
        near[at, wrong] = (near[at, wrong] + 1) % 26
        x = torch.randint(26, (len(todo), size), generator=draws)
        for word in (near, torch.where(label[todo, None] == 1, pattern[todo], near)):
            start = torch.randint(size - 2, (len(todo), 1), generator=draws)
            x.scatter_(1, start + torch.arange(3), word)
        text[todo] = x
        hit = (x.unfold(1, 3, 1) == pattern[todo, None]).all(2).any(1)
        todo = todo[hit != (label[todo] == 1)]
    return torch.cat([text, torch.full((n, 1), 26), pattern], 1), label


def strings_numpy(size: int, n: int, draws: np.random.Generator) -> object:
    pattern = draws.integers(26, size=(n, 3))
    label = np.arange(n) % 2
    text = np.empty((n, size), dtype=np.int64)
    todo = np.arange(n)
    while len(todo):
        near = pattern[todo]
        at = np.arange(len(todo))
        wrong = draws.integers(3, size=len(todo))
        near[at, wrong] = (near[at, wrong] + 1) % 26
        x = draws.integers(26, size=(len(todo), size))
        for word in (near, np.where(label[todo, None] == 1, pattern[todo], near)):
            start = draws.integers(size - 2, size=(len(todo), 1))
            x[at[:, None], start + np.arange(3)] = word
        text[todo] = x
        windows = np.lib.stride_tricks.sliding_window_view(x, 3, axis=1)
        hit = (windows == pattern[todo, None]).all(2).any(1)
        todo = todo[hit != (label[todo] == 1)]
    return np.concatenate([text, np.full((n, 1), 26), pattern], 1), label
