"""What records hold, as far as anything that reads them computes with it.

A field that is not there is no mismatch: who needs it says so. Unknown fields are let be.
"""

from __future__ import annotations

from typing import Any

from algocapture.store.files import StoreError
from algocapture.store.shape import ANY, Number, mismatch

LOOK = {"n": Number, "samples": Number, "error": Number, "low": Number, "high": Number}
LEDGER = {
    "stage": str,
    "account": ("train", "evaluate", "baseline"),
    "samples": Number,
    "flops": Number,
}
STAGE = {
    "index": int,
    "size": Number,
    "outcome": ("passed", "censored", "failed"),
    "limit": (str, None),
    "samples": Number,
    "samples_low": Number,
    "spent": Number,
    "spent_low": Number,
    "following": Number,
    "flops": Number,
    "looks": [LOOK],
    "probes": [LOOK | {"size": Number}],
    "baselines": {ANY: Number},
    "ledger": [LEDGER],
}
PROTOCOL = {
    "type": str,
    "delta": Number,
    "cost": Number,
    "test": {"beta": Number, "looks": int},
}
IDENTITY = {
    "type": str,
    "protocol": PROTOCOL,
    "margin": Number,
    "confidence": Number,
    "task": dict,
    "learner": dict,
}
EXTENSION = {"seeds": int, "limits": dict, "keep_models": bool, "parts": [str]}
EVALUATION = {
    "seed": int,
    "trained": Number,
    "size": Number,
    "n": Number,
    "error": Number,
    "low": Number,
    "high": Number,
}
META = {"sessions": [dict]}
COUNTS = {"units": int, "done": int, "running": int, "failed": int}
PROGRESS = {
    "runs": {ANY: COUNTS},
    "share": Number,
    "seconds_left": (int, float, None),
    "written": Number,
    "failures": [{"unit": str, "last": str}],
}
MOST_SEEDS = 1_000_000  # a count that ends loops: beyond it, a folder is no longer the unit


def wrong_stage(body: Any) -> str | None:
    """What a stage holds that cannot be computed with; None if there is nothing."""
    if wrong := mismatch(body, STAGE):
        return wrong
    if body.get("size", 1) <= 0:
        return f"size = {body['size']!r}"
    looked = [*body.get("looks", []), *body.get("probes", [])]
    return (
        _lacking(body.get("ledger", []), LEDGER)
        or _lacking([look for look in looked if "error" in look], ("n", "low", "high"))
        or _lacking(body.get("probes", []), ("size",))
    )


def wrong_config(body: dict[str, Any]) -> str | None:
    """Likewise of a run's configuration."""
    seeds = body["extension"].get("seeds", 1)
    if type(seeds) is int and not 1 <= seeds <= MOST_SEEDS:
        return f"extension.seeds = {seeds:.3g}"
    identity = None if "parts" in body["extension"] else mismatch(body["identity"], IDENTITY)
    return mismatch(body["extension"], EXTENSION) or identity


def wrong_test(identity: dict[str, Any]) -> str | None:
    """Likewise of the identity of a capture test, which has certain fields."""
    if wrong := lacks(identity, ("protocol", "margin", "confidence")):
        return wrong
    protocol = identity["protocol"]
    if wrong := lacks(protocol, ("type", "delta")):
        return wrong
    if protocol["type"] != "PacReplication":
        return None
    test = protocol.get("test", {})
    return lacks(protocol, ("cost", "test")) or lacks(test, ("beta", "looks")) or (
        None if test["looks"] >= 1 else f"protocol.test.looks = {test['looks']!r}"
    )  # fmt: skip


def need(stage: dict[str, Any], *names: str) -> None:
    """Refuse a stage that lacks what is now computed with."""
    if wrong := lacks(stage, names):
        raise StoreError(f"stage {stage.get('index', '?')} cannot be used: {wrong}")


def wrong_evaluations(rows: Any) -> str | None:
    """Likewise of what `algocapture eval` keeps."""
    return mismatch(rows, [EVALUATION]) or _lacking(rows, EVALUATION)


def wrong_progress(body: Any) -> str | None:
    """Likewise of what a sweep's driver says of how far it is."""
    return (
        mismatch(body, PROGRESS)
        or lacks(body, PROGRESS)
        or _lacking([*body["runs"].values()], COUNTS)
        or _lacking(body["failures"], ("unit", "last"))
    )


def lacks(held: dict[str, Any], needed: Any) -> str | None:
    return next((f"it has no field {name!r}" for name in needed if name not in held), None)


def _lacking(rows: list[dict[str, Any]], needed: Any) -> str | None:
    return next((bad for row in rows if (bad := lacks(row, needed))), None)
