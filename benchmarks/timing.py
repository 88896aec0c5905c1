"""How every benchmark measures: interleaved runs, the minimum of each, ratios.

Minimum, because noise on a shared machine only adds; interleaved, because it comes in spells.
Run a benchmark from the repository's root: `python -m benchmarks.tasks`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

Clock = Callable[[], float]

ROUNDS = 15
SHORTEST = 2e-3  # seconds: a quicker function is repeated within one measurement


def interleaved(
    functions: Mapping[str, Callable[[], object]], rounds: int = ROUNDS
) -> dict[str, float]:
    """Seconds per call of each function: the minimum over `rounds` rounds of all of them."""
    return {name: min(taken) for name, taken in measured(functions, rounds).items()}


def measured(
    functions: Mapping[str, Callable[[], object]],
    rounds: int = ROUNDS,
    clock: Clock = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds per call of each function in each of `rounds` rounds of all of them.

    `time.process_time` leaves out what other programs take of the machine, and waiting for disks.

    The first call of each warms up (compilation, caches) and is not counted. A function that
    works on a GPU must synchronise before it returns.
    """
    repeats = {}
    for name, function in functions.items():
        function()
        repeats[name] = 1 + int(SHORTEST / _seconds(function, 1, clock))
    taken: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            taken[name].append(_seconds(function, repeats[name], clock))
    return taken


def show(title: str, unit: str, work: Mapping[str, float], seconds: Mapping[str, float]) -> None:
    """Print `work` units per second of each function and how many times slower than the first.

    `work` may differ between functions: a slow peer may be given fewer instances.
    """
    rates = {name: work[name] / seconds[name] for name in seconds}
    ours = next(iter(rates.values()))
    print(title)
    for name, rate in rates.items():
        print(f"  {name:<28} {rate:>12,.3g} {unit}/s   ours is {ours / rate:>7.2f} x")


def _seconds(function: Callable[[], object], repeats: int, clock: Clock) -> float:
    start = clock()
    for _ in range(repeats):
        function()
    return (clock() - start) / repeats
