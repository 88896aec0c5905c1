"""Induction trained on lengths up to 50, asked at 51-150 without adaptation: a published anchor.

RoPE transformers of 4 layers, 4 heads and width 256 have been reported to read 0.94 at one to two
times the trained length and 0.67 at two to three times (docs/results/length_generalisation.md).
The base stage of a capture test is exactly that training; `evaluate` is exactly that question.

    python -m benchmarks.length_generalisation --out runs/lengths --device cuda
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from algocapture.experiment import Experiment, drive, evaluate
from algocapture.launch import Inline, Processes
from algocapture.learners import SGD
from algocapture.models import Transformer
from algocapture.protocol import Incremental, Limits
from algocapture.stats import SequentialTest
from algocapture.store import RunFolder
from algocapture.tasks import Induction

PUBLISHED = {"51-100": 0.94, "101-150": 0.67}


def experiment(device: str = "cpu") -> Experiment:
    """The published architecture; vocabulary, batch and optimiser are ours."""
    return Experiment(
        task=Induction(vocab=64),
        learner=SGD(
            model=Transformer(depth=4, width=256, heads=4, position="rope"),
            lr=1e-3,
            warmup=200,
            precision="bf16",
        ),
        protocol=Incremental(
            t0=50,
            base="upto",
            grid=50,  # every length from 4 to 50
            delta=0.01,
            batch=256,
            test=SequentialTest(looks=100, chunk=512, maximum=8192),
            probes=(),
        ),
        limits=Limits(largest=51),  # the base stage only
        seeds=3,
        device=device,
    )


def reduced() -> Experiment:
    """The same question in a minute of one CPU core: lengths up to 16."""
    full = experiment()
    return replace(
        full,
        task=Induction(vocab=16),
        learner=SGD(model=Transformer(depth=2, width=64, heads=4), lr=2e-3, warmup=50),
        protocol=replace(
            full.protocol,
            t0=16,
            batch=128,
            delta=0.02,
            test=SequentialTest(looks=100, chunk=256, maximum=4096),
        ),
        limits=Limits(largest=17),
        seeds=2,
    )


def bands(trained: int, points: int = 10) -> dict[str, list[int]]:
    """Lengths in the trained range, up to twice and up to three times: the cells' middles."""
    return {
        f"{lap * trained + 1}-{(lap + 1) * trained}": [
            max(4, lap * trained + (2 * i + 1) * trained // (2 * points)) for i in range(points)
        ]
        for lap in range(3)
    }


def accuracies(run: RunFolder, held: Experiment, samples: int) -> dict[str, dict[int, float]]:
    """Band -> seed -> mean accuracy over the band's lengths."""
    table: dict[str, dict[int, float]] = {}
    for name, sizes in bands(held.protocol.t0).items():
        rows = evaluate(run, held, sizes, samples)
        table[name] = {seed: _accuracy(rows, seed) for seed in sorted({r["seed"] for r in rows})}
    return table


def _accuracy(rows: Sequence[dict[str, Any]], seed: int) -> float:
    errors = [row["error"] for row in rows if row["seed"] == seed]
    return 1 - sum(errors) / len(errors)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--reduced", action="store_true")
    parser.add_argument("--processes", type=int, default=0, help="seeds side by side; 0: in turn")
    parser.add_argument("--time-limit", type=float)
    parser.add_argument("--samples", type=int, default=1000, help="instances of each length")
    given = parser.parse_args()
    held = reduced() if given.reduced else experiment(given.device)
    launcher = Processes(cores=given.processes) if given.processes else Inline()
    done = drive(held, given.out, launcher, time_limit=given.time_limit, watch=_tell)
    run = RunFolder(given.out)
    for seed in run.seeds():
        for stage in run.stages(seed):
            print(f"seed {seed}: {stage['outcome']} after {stage['spent']} samples")
    print(json.dumps({"complete": done, "accuracy": accuracies(run, held, given.samples)}))


def _tell(unit: str, event: dict[str, Any]) -> None:
    if event["event"] == "look":
        print(f"{unit} {event['samples']} samples: error {event['error']:.4f}", flush=True)


if __name__ == "__main__":
    main()
