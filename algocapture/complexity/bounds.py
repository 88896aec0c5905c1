"""What the paper's bounds forbid, and what they say nothing about.

A network that has captured a task solves it in the time that evaluating the network takes. So a
task whose complexity, in the paper's sense (an EPTHS under the task's own measure), provably lies
above that time cannot be captured. Only a lower bound can forbid. An upper bound on the task,
proved or measured, can at most show that a bound does not apply; `allowed` is no promise of
capture. Pure Python: no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Side = Literal["upper", "lower"]
Kind = Literal["proved", "measured", "conditional"]
Outcome = Literal["forbidden", "allowed", "unknown"]


@dataclass(frozen=True)
class Bound:
    """Captured tasks have an EPTHS of complexity O(T^(exponent + epsilon)), epsilon > 0."""

    name: str
    exponent: float
    regime: str
    rests_on: str

    @property
    def law(self) -> str:
        return f"T^({self.exponent:g}+eps)"


KERNEL = Bound(
    "kernel estimate",
    3.0,
    "infinite width, lazy (NNGP or NTK)",
    "the theorem on kernel evaluation, bounded kernel coefficients. It is non-uniform: the "
    "coefficients come from training and depend on T at no cost (advice for every T)",
)
FORWARD = Bound(
    "forward pass",
    2.0,
    "infinite width, lazy or rich (mean-field)",
    "an assumption: a network of width N is P^gamma / N away from its limit. Non-uniform too: the "
    "weights depend on T",
)
BOUNDS = (KERNEL, FORWARD)


def adapted(kappa: float) -> float:
    """The kernel bound's exponent where T^kappa samples are needed (remark on polynomial data)."""
    return 3 + 2 * max(kappa, 0.0)


@dataclass(frozen=True)
class Fact:
    """A bound on a task's complexity, and what it rests on."""

    side: Side
    exponent: float
    kind: Kind
    source: str
    ours: bool = True  # under the task's own measure; False: in the worst case, or another one

    def __post_init__(self) -> None:
        if self.side == "lower" and self.kind == "measured":
            raise ValueError("a lower bound cannot be measured: other algorithms may be quicker")


FACTS: dict[str, tuple[Fact, ...]] = {
    "Induction": (Fact("upper", 1, "proved", "one scan"),),
    "Sorting": (
        Fact("upper", 1, "proved", "counting sort, 2 T + 2 V"),
        Fact("lower", 1, "proved", "T letters have to be written"),
    ),
    "StringMatch": (Fact("upper", 1, "proved", "Knuth, Morris and Pratt, at most 2 (T + m)"),),
    "GrammarRecognition": (
        Fact("upper", 3, "proved", "CYK"),
        Fact("upper", 2.371339, "proved", "Valiant (1975) with the matrix product of Alman et al. "
             "(SODA 2025)"),
        Fact("lower", 2.371339, "conditional", "Abboud, Backurs and Vassilevska Williams (2015): "
             "if k-clique needs today's time; in the worst case, for one particular grammar",
             ours=False),
        Fact("upper", 1.06, "measured", "Earley's parser on the task's own instances, T = 16 to "
             "256: docs/results/epths"),
    ),
    "ShortestPath": (
        Fact("upper", 1, "proved", "breadth-first search at constant degree; T log T at degree "
             "log T"),
    ),
    "MinCut": (
        Fact("upper", 1, "proved", "unit capacities: no more augmenting paths than the source has "
             "neighbours; T log^2 T at degree log T (the paper allows T^2)"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Standing:
    """What a bound says of a task."""

    bound: Bound
    outcome: Outcome
    reason: str

    def to_json(self) -> dict[str, Any]:
        return {"law": self.bound.law} | asdict(self)


def standing(bound: Bound, facts: Sequence[Fact]) -> Standing:
    """Forbidden only by a proved lower bound under the task's measure; allowed only by a proved
    upper bound that is no larger than the bound."""
    lower = [f for f in facts if f.side == "lower" and f.exponent > bound.exponent]
    proved = [f for f in lower if f.kind == "proved" and f.ours]
    if proved:
        best = max(proved, key=lambda f: f.exponent)
        return Standing(
            bound, "forbidden", f"needs T^{best.exponent:g} ({best.source}) > {bound.law}"
        )
    upper = [f for f in facts if f.side == "upper" and f.kind == "proved"]
    fitting = [f for f in upper if f.exponent <= bound.exponent]
    if fitting:
        best = min(fitting, key=lambda f: f.exponent)
        return Standing(
            bound,
            "allowed",
            f"solved in T^{best.exponent:g} ({best.source}); this does not say that it is captured",
        )
    return Standing(bound, "unknown", _why_unknown(bound, facts, lower))


def _why_unknown(bound: Bound, facts: Sequence[Fact], lower: Sequence[Fact]) -> str:
    if not facts:
        return "no complexity of this task is known here"
    parts = []
    upper = [f for f in facts if f.side == "upper"]
    if upper:
        best = min(upper, key=lambda f: (f.kind != "proved", f.exponent))
        parts.append(
            f"the best proved upper bound, T^{best.exponent:g}, lies above {bound.law}, and an "
            "upper bound forbids nothing"
        )
    parts += [f"a lower bound of T^{f.exponent:g} is {_weakness(f)}: {f.source}" for f in lower]
    parts += [
        f"measured T^{f.exponent:g} ({f.source}) is a finite range, no proof"
        for f in upper
        if f.kind == "measured"
    ]
    if not lower:
        parts.append("no lower bound above it is known")
    return "; ".join(parts)


def _weakness(fact: Fact) -> str:
    where = "" if fact.ours else " and not under this measure"
    return f"{fact.kind}{where}"


def table() -> dict[str, tuple[Standing, ...]]:
    """Every task against every bound."""
    return {task: of_task(task) for task in FACTS}


def of_task(task: str) -> tuple[Standing, ...]:
    """A task by the name of its type; one of a user's own is unknown."""
    return tuple(standing(bound, FACTS.get(task, ())) for bound in BOUNDS)


def overall(standings: Sequence[Standing]) -> Outcome:
    """Forbidden by any bound; allowed only if by all."""
    outcomes = {s.outcome for s in standings}
    return next(o for o in ("forbidden", "unknown", "allowed") if o in outcomes)
