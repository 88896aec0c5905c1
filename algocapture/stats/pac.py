"""What replicated adaptations say about beta and alpha, per size.

R_T, the error of an adapted model, is itself estimated. A pass is misjudged with probability at
most `misjudged` (the level of the look), so Pr[judged pass] <= Pr[R_T < delta] + misjudged; a
failure is counted as one only where the interval of the error lies above delta, misjudged with
probability at most `misjudged_failure`. What is neither leaves the interval of beta wide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scipy.special import betaincinv  # scipy.stats takes half a second to load

Interval = tuple[float, float]


@dataclass(frozen=True)
class Replicate:
    """One adaptation from a base model to a size."""

    size: int
    passed: bool  # judged to have error below delta
    failed: bool  # the interval of its error lies at or above delta


@dataclass(frozen=True)
class Statement:
    """At one size: the failure probability beta of each base model, and alpha over them."""

    size: int
    replicates: dict[int, int]  # base model -> adaptations
    passed: dict[int, int]
    beta: dict[int, Interval]
    alpha: Interval  # share of base models whose beta exceeds the target
    target: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def sentence(self) -> str:
        """For people: what is shown at this size."""
        rates = ", ".join(
            f"base {base}: {self.passed[base]}/{n} pass, beta in [{low:.3f}, {high:.3f}]"
            for (base, n), (low, high) in zip(
                self.replicates.items(), self.beta.values(), strict=True
            )
        )
        low, high = self.alpha
        return (
            f"T = {self.size}: {rates}; alpha at beta <= {self.target:g} in [{low:.2f}, {high:.2f}]"
        )


def statements(
    bases: Mapping[int, Sequence[Replicate]],
    target: float = 0.1,
    confidence: float = 0.95,
    misjudged: float = 0.01,
    misjudged_failure: float = 0.05,
) -> list[Statement]:
    """One statement for each size that every base model was adapted to."""
    if not bases:
        raise ValueError("no base model: alpha and beta need at least one")
    for name, value in (("target", target), ("confidence", confidence)):
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie in (0, 1), got {value!r}")
    sizes = set.intersection(*({r.size for r in of} for of in bases.values()))
    return [
        _at_size(size, bases, target, confidence, misjudged, misjudged_failure)
        for size in sorted(sizes)
    ]


def _at_size(
    size: int,
    bases: Mapping[int, Sequence[Replicate]],
    target: float,
    confidence: float,
    misjudged: float,
    misjudged_failure: float,
) -> Statement:
    replicates, passed, betas = {}, {}, {}
    for base, of in bases.items():
        here = [r for r in of if r.size == size]
        passes, failures = sum(r.passed for r in here), sum(r.failed for r in here)
        replicates[base], passed[base] = len(here), passes
        success = clopper_pearson(passes, len(here), confidence)[0] - misjudged
        failure = clopper_pearson(failures, len(here), confidence)[0] - misjudged_failure
        betas[base] = (max(0.0, failure), min(1.0, 1 - success))
    bad = sum(low > target for low, _ in betas.values())
    unclear = sum(low <= target < high for low, high in betas.values())
    alpha = (
        clopper_pearson(bad, len(betas), confidence)[0],
        clopper_pearson(bad + unclear, len(betas), confidence)[1],
    )
    return Statement(size, replicates, passed, betas, alpha, target)


def clopper_pearson(successes: int, trials: int, confidence: float) -> Interval:
    """The exact interval of a binomial proportion."""
    tail = (1 - confidence) / 2
    low = betaincinv(successes, trials - successes + 1, tail) if successes else 0.0
    high = betaincinv(successes + 1, trials - successes, 1 - tail) if successes < trials else 1.0
    return float(low), float(high)
