"""The record of a decided stage: what the store keeps and `stats` reads."""

from __future__ import annotations

from typing import Any

from algocapture.protocol.member import Member
from algocapture.protocol.plan import DIVERGED, Limits, Protocol
from algocapture.tasks.base import Task


def stage_record(
    member: Member, protocol: Protocol, task: Task, outcome: str, extras: dict[str, Any]
) -> dict[str, Any]:
    """P is the interval (spent_low, spent]: the last failing and the first passing look.

    The outcome is passed, censored (a limit ended it) or, where a stage has a fixed budget, failed.
    Cumulative over all stages in the incremental protocol, over the base stage and this one in
    the whole-interval protocol, whose stages all start from the base model.
    """
    samples = member.steps * protocol.batch
    return {
        "index": member.stage,
        "size": protocol.size(member.stage),
        "training_sizes": protocol.training_sizes(member.stage, task.spec.smallest),
        "outcome": outcome,
        "limit": member.censored,
        "samples": samples,
        "samples_low": member.low,
        "spent": member.spent + samples,
        "spent_low": member.spent + member.low,
        "following": member.next_look * protocol.batch,
        "flops": member.ledger.spent(stage=member.name, account="train").flops,
        "looks": list(member.looks),
        "ledger": member.ledger.to_json(),
    } | extras


def is_final(record: dict[str, Any], protocol: Protocol, limits: Limits) -> bool:
    """Whether a seed whose last record this is has nothing left to do within the limits."""
    if record["outcome"] != "censored":
        return protocol.size(record["index"] + 1) > limits.largest
    if record["limit"] == DIVERGED:
        return True
    looks, following, flops = len(record["looks"]), record["following"], record["flops"]
    return limits.binding(protocol, looks, following, flops) is not None
