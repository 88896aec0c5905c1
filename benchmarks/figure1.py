"""Where the time of one panel of Figure 1 goes: training, looks, sampling; FLOP/s beside a product.

    python -m benchmarks.figure1 induction --seconds 180

The panel's first (or the named) experiment goes through the engine alone, without folder, on a GPU.
What is sampled is timed by waiting for it, at every tenth draw.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections import Counter
from typing import Any

import torch

from algocapture.experiment import Experiment
from algocapture.protocol import Decided, Engine
from algocapture.protocol.events import Looked
from algocapture.protocol.member import Member

DEVICE = torch.device("cuda")
EVERY = 10


def experiment_of(panel: str, name: str | None) -> Experiment:
    found = importlib.import_module(f"algocapture.recipes.fig1.{panel}").experiment()
    if isinstance(found, Experiment):
        return found
    return found[name or next(iter(found))]


def timed_draws(spent: Counter[str]) -> None:
    """`Member.draw` adds ten times what every tenth draw took to `spent`."""
    draw, calls = Member.draw, Counter[str]()

    def measured(self: Member, *args: Any) -> Any:
        calls["all"] += 1
        if calls["all"] % EVERY:
            return draw(self, *args)
        torch.cuda.synchronize()
        begun = time.perf_counter()
        made = draw(self, *args)
        torch.cuda.synchronize()
        spent["sampling"] += EVERY * (time.perf_counter() - begun)
        return made

    Member.draw = measured  # type: ignore[method-assign]


def follow(engine: Engine, seconds: float, spent: Counter[str]) -> None:
    begun = time.perf_counter()
    while time.perf_counter() - begun < seconds:
        now = time.perf_counter()
        events = engine.advance()
        if not events:
            break
        took = time.perf_counter() - now
        kind = "looks" if any(isinstance(e, Looked) for e in events) else "training"
        spent[kind] += took
        spent[f"longest of {kind}"] = max(took, spent[f"longest of {kind}"])
        for event in events:
            if isinstance(event, Decided):
                record, elapsed = event.record, time.perf_counter() - begun
                print(
                    f"{elapsed:6.1f} s  member {event.member}  T {record['size']:6d} "
                    f"{record['outcome']:8s} P {record['spent']:10,d} "
                    f"looks {len(record['looks']):3d} error {record['looks'][-1]['error']:.4f}",
                    flush=True,
                )


def product_rate() -> float:
    """FLOP/s of a large bf16 product."""
    a = torch.randn(8192, 8192, device=DEVICE, dtype=torch.bfloat16)
    for _ in range(3):
        a @ a
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(20):
        a @ a
    torch.cuda.synchronize()
    return 20 * 2 * 8192**3 / (time.perf_counter() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("panel")
    parser.add_argument("--name")
    parser.add_argument("--seconds", type=float, default=180)
    given = parser.parse_args()
    experiment = experiment_of(given.panel, given.name)
    spent: Counter[str] = Counter()
    timed_draws(spent)
    begun = time.perf_counter()
    seeds = [experiment.seed(number) for number in range(experiment.population)]
    engine = Engine(
        experiment.task,
        experiment.learner,
        experiment.protocol,
        experiment.limits,
        seeds,
        DEVICE,
    )
    follow(engine, given.seconds, spent)
    wall = time.perf_counter() - begun
    flops = {
        account: sum(m.ledger.spent(account=account).flops for m in engine.members)
        for account in ("train", "evaluate")
    }
    samples = sum(m.ledger.spent(account="train").samples for m in engine.members)
    rate = product_rate()
    print(f"{given.panel}: {wall:.1f} s, {samples:,} training samples, {samples / wall:,.0f}/s")
    for name, seconds in sorted(spent.items()):
        print(f"  {name}: {seconds:.1f} ({100 * seconds / wall:.0f}% of the time)")
    for account, part in (("train", "training"), ("evaluate", "looks")):
        reached = flops[account] / max(spent[part], 1e-9)
        print(f"  {part}: {reached / 1e12:.1f} of {rate / 1e12:.0f} TFLOP/s = {reached / rate:.1%}")


if __name__ == "__main__":
    main()
