"""What is judged in another way than one curve per seed: several deltas, and replications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from algocapture.config import difference, digest
from algocapture.report.summary import PAC, Summary
from algocapture.stats import Deltas, judge_deltas
from algocapture.stats.pac import Replicate, Statement, statements
from algocapture.store import StoreError


def together(summaries: Sequence[Summary]) -> Deltas:
    """Runs that are the same but for delta, judged as the definition asks: at every delta."""
    first = summaries[0]
    for other in summaries[1:]:
        if lines := difference(_but_delta(first), _but_delta(other)):
            raise StoreError(
                f"{first.path} and {other.path} differ in more than delta:\n  " + "\n  ".join(lines)
            )
    by_delta = {summary.delta: summary for summary in summaries}
    if len(by_delta) < len(summaries):
        raise StoreError("two runs have the same delta: extend one of them by more seeds instead")
    return judge_deltas(
        {delta: summary.curves() for delta, summary in by_delta.items()},
        first.identity["margin"],
        first.identity["confidence"],
        {delta: summary.facts() for delta, summary in by_delta.items()},
    )


def by_delta(summaries: Sequence[Summary]) -> list[list[Summary]]:
    """The groups of runs that `together` judges: the same but for delta, no delta twice."""
    groups: dict[str, list[Summary]] = {}
    for summary in summaries:
        groups.setdefault(digest(_but_delta(summary)), []).append(summary)
    return [group for group in groups.values() if len(group) == len({s.delta for s in group}) > 1]


def _but_delta(summary: Summary) -> dict[str, Any]:
    protocol = {k: v for k, v in summary.identity["protocol"].items() if k != "delta"}
    return summary.identity | {"protocol": protocol}


def is_pac(summary: Summary) -> bool:
    """Is it a replication of adaptations with a fixed budget, and not a curve?"""
    return bool(summary.identity["protocol"]["type"] == PAC)


def pac(summary: Summary) -> list[Statement]:
    """Statements on beta and alpha at each size that every base model was adapted to."""
    test = summary.identity["protocol"]["test"]
    bases = {seed: _replicates(of, summary.delta) for seed, of in summary.stages.items()}
    return statements(
        {seed: held for seed, held in bases.items() if held},
        confidence=summary.identity["confidence"],
        misjudged=test["beta"] / test["looks"],
    )


def _replicates(stages: Sequence[dict[str, Any]], delta: float) -> list[Replicate]:
    """The first stage is the base model's own."""
    try:
        return [
            Replicate(
                size=stage["size"],
                passed=stage["outcome"] == "passed",
                failed=stage["outcome"] == "failed" and stage["looks"][-1]["low"] >= delta,
            )
            for stage in stages[1:]
            if stage["outcome"] in ("passed", "failed")
        ]
    except (KeyError, IndexError, TypeError) as error:
        raise StoreError(f"a stage lacks what a replication records: {error!r}") from error


def pac_json(summary: Summary) -> dict[str, Any]:
    """What `verdict --json` prints for a replication."""
    return {
        "protocol": PAC,
        "delta": summary.delta,
        "cost": summary.identity["protocol"]["cost"],
        "complete": summary.complete,
        "statements": [
            statement.to_json() | {"sentence": statement.sentence()} for statement in pac(summary)
        ],
    }
