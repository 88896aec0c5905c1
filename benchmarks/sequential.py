"""The sequential test on 10,000 synthetic stages: false passes, bias of P, instances needed.

Prints the tables of docs/theory/sequential.md.    python -m benchmarks.sequential
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import stats as scipy_stats

from algocapture.rng import Seed
from algocapture.stats.sequential import SequentialTest
from algocapture.stats.simulate import simulate_looks, simulate_stages

TEST = SequentialTest()
STAGES = 10_000
ROOT = Seed(0).child("benchmarks", "sequential")


def false_passes() -> None:
    print(
        "| delta | true error / delta | stages passed (of 10,000) | bound beta | instances a look |"
    )
    print("|---|---|---|---|---|")
    for delta in (0.01, 0.05, 0.2):
        for ratio in (1.0, 1.05, 1.2):
            g = ROOT.child("false", str(delta), str(ratio)).numpy()
            s = simulate_stages(TEST, delta, lambda _, e=delta * ratio: e, STAGES, g)
            used = s.instances.mean() / TEST.looks
            print(f"| {delta} | {ratio} | {s.passed.mean():.2%} | {TEST.beta:.0%} | {used:,.0f} |")


CURVES: dict[str, Callable[[float], float]] = {  # error / delta against batches / length
    "power law": lambda x: (x + 1e-9) ** -1.0,
    "exponential": lambda x: math.exp(3 * (1 - x)),
    "plateau, then fall": lambda x: 4 / (1 + 3 * x**8),
}


def bias() -> None:
    """Stages whose error crosses delta at `length` batches: is P / length the same for all?"""
    print(
        "| error over the stage | length | low / length | P / length | log-sd of P | passed early |"
    )
    print("|---|---|---|---|---|---|")
    for name, curve in CURVES.items():
        for length in (1, 3, 10, 30, 100, 1000, 10_000):
            g = ROOT.child("bias", name, length).numpy()
            error = lambda b, n=length, f=curve: min(0.9, 0.05 * f(b / n))  # noqa: E731
            s = simulate_stages(TEST, 0.05, error, STAGES, g)
            low, high = np.nanmean(s.low) / length, np.nanmean(s.high) / length
            early = np.mean(s.high < length)
            spread = np.nanstd(np.log(s.high))
            print(f"| {name} | {length:,} | {low:.2f} | {high:.2f} | {spread:.3f} | {early:.2%} |")


def instances() -> None:
    """Beside a binomial test of fixed size, same level per look, 90% power at that error."""
    level = TEST.beta / TEST.looks
    print(
        "| delta | true error / delta | passed | instances (mean, 90th percentile) | fixed size |"
    )
    print("|---|---|---|---|---|")
    for delta in (0.01, 0.05, 0.2):
        for ratio in (0.0, 0.25, 0.5, 0.7, 0.8, 1.0, 1.2, 1.5, 2.0, 5.0):
            g = ROOT.child("instances", str(delta), str(ratio)).numpy()
            passed, used = simulate_looks(TEST, delta, delta * ratio, STAGES, g)
            fixed = _fixed(delta, ratio, level)
            tail = np.quantile(used, 0.9)
            print(
                f"| {delta} | {ratio} | {passed.mean():.1%} | {used.mean():,.0f}, {tail:,.0f} "
                f"| {fixed} |"
            )


def _fixed(delta: float, ratio: float, level: float) -> str:
    if ratio >= 1:
        return "the same n for every error"
    for n in np.unique(np.geomspace(100, 300_000, 400).astype(int)):
        most = scipy_stats.binom.ppf(level, n, delta) - 1  # largest count that still passes
        if most >= 0 and scipy_stats.binom.cdf(most, n, delta * ratio) >= 0.9:
            return f"{n:,}"
    return "> 300,000"


if __name__ == "__main__":
    for table in (false_passes, bias, instances):
        table()
        print()
