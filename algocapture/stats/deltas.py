"""Several deltas of one task, judged together: the definition asks for every small delta."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from algocapture.stats.curve import Curve
from algocapture.stats.judge import Facts, judge
from algocapture.stats.verdict import Outcome, Verdict


@dataclass(frozen=True)
class Trend:
    """How a quantity moves with delta: its power of 1/delta between the extreme deltas."""

    power: float  # NaN where the quantity is not positive at both


@dataclass(frozen=True)
class Deltas:
    """The verdicts by delta, largest delta first, and what they say together."""

    outcome: Outcome
    verdicts: dict[float, Verdict]
    first_cost: Trend  # of P0
    cost: Trend  # of C0, the guide's C
    sentence: str

    def table(self) -> list[dict[str, Any]]:
        """One row per delta: P0, C0 and the exponent against delta."""
        return [
            {
                "delta": delta,
                "outcome": v.outcome,
                "P0": v.first_cost,
                "C0": v.guide.cost,
                "exponent": v.exponent,
                "low": v.interval[0],
                "high": v.interval[1],
                "seeds": v.seeds,
                "largest": v.sizes[1],
            }
            for delta, v in self.verdicts.items()
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "outcome": self.outcome,
            "sentence": self.sentence,
            "powers": {"P0": _finite(self.first_cost.power), "C0": _finite(self.cost.power)},
            "verdicts": {f"{delta:g}": v.to_json() for delta, v in self.verdicts.items()},
        }


def judge_deltas(
    curves: Mapping[float, Sequence[Curve]],
    margin: float = 0.25,
    confidence: float = 0.95,
    facts: Mapping[float, Facts] | None = None,
) -> Deltas:
    """Judge each delta, then all of them: captured only if captured at every delta."""
    if not curves:
        raise ValueError("no deltas: give a mapping from delta to the curves of its seeds")
    for delta in curves:
        if not (isinstance(delta, Real) and 0 < delta < 1):
            raise ValueError(f"delta = {delta!r}: an error strictly between 0 and 1")
    verdicts = {
        delta: judge(curves[delta], margin, confidence, (facts or {}).get(delta, Facts(delta)))
        for delta in sorted(curves, reverse=True)
    }
    outcome = _together([v.outcome for v in verdicts.values()])
    return Deltas(
        outcome=outcome,
        verdicts=verdicts,
        first_cost=_trend({d: v.first_cost for d, v in verdicts.items()}),
        cost=_trend({d: v.guide.cost for d, v in verdicts.items()}),
        sentence=_sentence(outcome, verdicts),
    )


def _together(outcomes: list[Outcome]) -> Outcome:
    if "not captured" in outcomes:
        return "not captured"
    return "captured" if all(o == "captured" for o in outcomes) else "undecided"


def _trend(values: dict[float, float]) -> Trend:
    deltas, held = list(values), list(values.values())
    if len(deltas) < 2 or min(held[0], held[-1]) <= 0:
        return Trend(float("nan"))
    return Trend(float(np.log(held[-1] / held[0]) / np.log(deltas[0] / deltas[-1])))


def _sentence(outcome: Outcome, verdicts: dict[float, Verdict]) -> str:
    parts = ", ".join(f"{v.outcome} at {delta:g}" for delta, v in verdicts.items())
    if len(verdicts) == 1:
        return f"One delta only ({parts}); the definition asks for every sufficiently small delta."
    if outcome == "captured":
        return f"Captured at every delta tried ({parts}); smaller deltas remain untested."
    if outcome == "not captured":
        return f"Not captured: the definition asks for every sufficiently small delta ({parts})."
    return f"Undecided over the deltas tried ({parts})."


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
