"""Synthetic runs: stage records as the protocol writes them, from curves whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from algocapture.stats import Curve
from algocapture.stats.simulate import World, simulate_curves
from algocapture.store import RunFolder

BATCH = 512


def identity(**changes: Any) -> dict[str, Any]:
    protocol = {"type": "Incremental", "t0": 50, "delta": 0.05, "growth": 1.2, "batch": BATCH}
    whole = {
        "type": "Experiment",
        "task": {"type": "Induction", "vocab": 1024},
        "learner": {"type": "SGD", "model": {"type": "Transformer", "depth": 2}, "lr": 1e-3},
        "protocol": protocol | changes.pop("protocol", {}),
        "root": 0,
        "margin": 0.25,
        "confidence": 0.95,
    }
    return whole | changes


def write_run(
    path: Path,
    curves: list[Curve],
    *,
    finish: bool = True,
    meta: dict[str, Any] | None = None,
    seed: int = 0,
    baselines: dict[str, float] | None = None,
    looks: int = 1,
    **changes: Any,
) -> Path:
    """A run's folder with these curves, errors and baselines made up to fit."""
    generator = np.random.default_rng(seed)
    if any(not curve.cumulative for curve in curves):
        changes["protocol"] = {"type": "WholeInterval"} | changes.get("protocol", {})
    held = identity(**changes)
    limits = {"type": "Limits", "largest": 1600, "samples": 1_000_000}
    extension = {"seeds": max(1, len(curves)), "limits": limits, "keep_models": True}
    with RunFolder.enter(path, held, extension) as run:
        for number, curve in enumerate(curves):
            ledger: list[dict[str, Any]] = []  # a stage's record holds all that was spent so far
            for index in range(len(curve.sizes)):
                body = stage(curve, index, held["protocol"]["delta"], generator)
                body["baselines"] = (body["baselines"] and baselines) or body["baselines"]
                body["looks"] = body["looks"][:1] * (looks - 1) + body["looks"]
                ledger = body["ledger"] = ledger + body["ledger"]
                run.append_stage(number, index, body)
        run.write_meta({"sessions": [meta or SESSION]})
        if finish:
            run.write_result()
    return path


SESSION = {
    "algocapture": "0.1.0",
    "begun": "2026-01-01T00:00:00Z",
    "seconds": 123.4,
    "python": "3.11.7",
    "torch": "2.6.0",
    "device": "x86_64",
    "units": {"unit-000": {"code": 0, "tries": 1}},
}


def stage(curve: Curve, index: int, delta: float, generator: np.random.Generator) -> dict[str, Any]:
    size, spent = round(curve.sizes[index]), round(curve.spent[index])
    low = round((curve.spent_low or curve.spent)[index])
    passed = not (curve.censored and index == len(curve.sizes) - 1)
    start = (
        0 if index == 0 else round(curve.spent[index - 1] if curve.cumulative else curve.spent[0])
    )
    name = f"stage-{index:03d}"
    free = spent == start
    looks = [] if free else [look(0, size, min(4 * delta, 0.9), delta, "fail", generator)]
    error = 0.5 * delta if passed else 1.7 * delta
    looks.append(look(spent - start, size, error, delta, "pass" if passed else "fail", generator))
    return {
        "index": index,
        "size": size,
        "outcome": "passed" if passed else "censored",
        "limit": None if passed else "samples",
        "samples": spent - start,
        "spent": spent,
        "spent_low": low,
        "flops": 1000 * (spent - start) * size,
        "looks": looks,
        "ledger": [
            {"stage": name, "account": "train", "samples": spent - start,
             "flops": 1000 * (spent - start) * size},
            {"stage": name, "account": "evaluate", "samples": 4096, "flops": 350 * 4096 * size},
            {"stage": name, "account": "baseline", "samples": 256, "flops": 0},
        ],
        "probes": [look(0, 2 * size, min(8 * delta, 0.9), delta, "", generator)] if passed else [],
        "baselines": {"second token": 1 - 8 / size, "constant": 0.97} if passed else {},
    }  # fmt: skip


def look(
    samples: int, size: int, error: float, delta: float, decision: str, g: np.random.Generator
) -> dict[str, Any]:
    n = 1024
    found = float(g.binomial(n, error)) / n
    width = 2 * (found * (1 - found) / n) ** 0.5 + 2 / n
    ends = {"low": max(found - width, 0.0), "high": min(found + width, 1.0)}
    return {"samples": samples, "size": size, "n": n, "error": found, **ends, "decision": decision}


def world(kappa: float = 0.0, seed: int = 0, **changes: Any) -> list[Curve]:
    """Curves of a synthetic experiment with integer sizes, as tasks have them."""
    found = simulate_curves(World(kappa=kappa, **changes), np.random.default_rng(seed))
    return [
        Curve([round(size) for size in c.sizes], c.spent, c.censored, c.spent_low, c.cumulative, i)
        for i, c in enumerate(found)
    ]
