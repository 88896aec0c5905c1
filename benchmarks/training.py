"""What the capture engine costs over a bare training loop, seeds over one seed, samples over steps.

    python -m benchmarks.training            # all, about ten minutes
    python -m benchmarks.training engine     # or: seeds, sampling

One thread each. Every run trains and stores for real; `bare` is the loop that one would write by
hand for the same steps at the same sizes and the same evaluations.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_

import algocapture.protocol.engine
import algocapture.protocol.examine
from algocapture.experiment import Experiment, drive
from algocapture.experiment.messages import Reporter
from algocapture.launch import Inline, Launcher, Processes
from algocapture.learners import SGD
from algocapture.learners.sgd import SGDLearner
from algocapture.ledger import Ledger
from algocapture.models import Transformer
from algocapture.protocol import Engine, Limits
from algocapture.protocol.examine import Examiner
from algocapture.protocol.labels import SeenLabels
from algocapture.protocol.member import Member
from algocapture.protocol.streams import Stream
from algocapture.recipes.quickstart import experiment as quickstart
from algocapture.rng import Seed
from algocapture.stats.sequential import Look
from algocapture.store import UnitFolder
from algocapture.tasks import Induction
from benchmarks.timing import Clock, measured

Plan = list[tuple[str, int, int]]  # ("train" or "look", size, instances)
Taken = Mapping[str, list[float]]


def main() -> None:
    torch.set_num_threads(1)
    parts = {"engine": engine, "seeds": seeds, "sampling": sampling}
    for name in sys.argv[1:] or parts:
        parts[name]()


def engine() -> None:
    """The quickstart's model where its steps are shortest, T0 = 8, and in the middle of its sizes.

    In processor time, since wall time on a shared machine says little; what the disk makes us
    wait is said beside it. Real stages are longer, so records weigh less than here.
    """
    base = replace(quickstart(), seeds=1)
    short = replace(base.protocol, delta=0.4)
    middle = replace(base.protocol, t0=40, delta=0.01, probes=(), baseline_samples=0)
    overhead(replace(base, protocol=short, limits=Limits(largest=9)))
    overhead(replace(base, protocol=middle, limits=Limits(largest=41, samples=6_400)))


def overhead(held: Experiment) -> None:
    plan = recorded(held)
    steps = sum(kind == "train" for kind, _, _ in plan)
    print(f"T0 = {held.protocol.t0}: {steps} steps, {len(plan) - steps} evaluations of <= 128")
    contenders = {"bare loop": partial(bare, held, plan), "engine": partial(run, held)}
    taken = measured(contenders, clock=time.process_time)
    show(taken, "bare loop")
    whole = min(taken["bare loop"])
    for clock in (time.process_time, time.perf_counter):
        with stopwatches(clock) as spent:
            run(held)
        print(f"    {clock.__name__} of one run, and its share of the bare loop's")
        for name, seconds in sorted(spent.items(), key=lambda item: -item[1]):
            print(f"    {name:<34} {1e3 * seconds:8.1f} ms  {seconds / whole:6.1%}")


def run(held: Experiment, launcher: Launcher | None = None) -> None:
    """A run from nothing to its result, on disk."""
    folder = Path(tempfile.mkdtemp())
    try:
        assert drive(held, folder / "run", launcher or Inline()), "the run was stopped"
    finally:
        shutil.rmtree(folder)


def recorded(held: Experiment) -> Plan:
    """The steps and evaluations of a run, in their order."""
    plan: Plan = []

    def watch(kind: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(learner: SGDLearner, batches: list[Any]) -> Any:
            plan.extend((kind, batch.size, len(batch)) for batch in batches if batch is not None)
            return method(learner, batches)

        return call

    with (
        mock.patch.object(SGDLearner, "step", watch("train", SGDLearner.step)),
        mock.patch.object(SGDLearner, "predict", watch("look", SGDLearner.predict)),
    ):
        run(held)
    return plan


def bare(held: Experiment, plan: Plan) -> tuple[list[float], list[float]]:
    """The same by hand: no ledger, no test, no records, one generator."""
    task, learner = held.task, held.learner
    assert isinstance(learner, SGD)
    generator = torch.Generator().manual_seed(0)
    module = learner.model.build(task.spec, generator)
    optimiser = torch.optim.AdamW(
        module.parameters(), lr=learner.lr, betas=learner.betas, weight_decay=0.0, foreach=True
    )
    losses: list[float] = []
    errors: list[float] = []
    for kind, size, n in plan:
        batch = task.sample(size, n, generator)
        if kind == "train":
            module.train()
            loss = F.cross_entropy(module(batch.inputs), batch.targets)
            optimiser.zero_grad()
            loss.backward()
            clip_grad_norm_(module.parameters(), 1.0)
            for group in optimiser.param_groups:
                group["lr"] = learner.learning_rate(len(losses))
            optimiser.step()
            losses.append(loss.item())
        else:
            module.eval()
            with torch.no_grad():
                wrong = module(batch.inputs).argmax(-1) != batch.targets
            errors.append(wrong.double().mean().item())
    return losses, errors


WATCHED: Mapping[str, list[tuple[Any, str]]] = {
    "checkpoints and stage records": [(UnitFolder, "commit"), (Engine, "state")],
    "the sequential test": [(Look, "update")],
    "intervals of the looks": [(algocapture.stats.sequential, "confidence_interval")],
    "seeds and generators": [
        (Stream, "take"),
        (algocapture.protocol.examine, "torch_generator"),
        (Seed, "numpy"),
    ],
    "labels seen at T0": [(SeenLabels, "add"), (SeenLabels, "split")],
    "the ledger": [(Ledger, "charge")],
    "baselines": [(Examiner, "_baselines")],
    "progress": [(Reporter, "events")],
}


@contextmanager
def stopwatches(clock: Clock) -> Iterator[dict[str, float]]:
    """Seconds spent in the engine's own work, by kind. What is nested counts once, outside."""
    spent = dict.fromkeys(WATCHED, 0.0)
    inside: list[str] = []

    def timed(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if inside:
                return method(*args, **kwargs)
            inside.append(name)
            begun = clock()
            try:
                return method(*args, **kwargs)
            finally:
                spent[inside.pop()] += clock() - begun

        return call

    with ExitStack() as stack:
        for name, places in WATCHED.items():
            for owner, method in places:
                patch = mock.patch.object(owner, method, timed(name, getattr(owner, method)))
                stack.enter_context(patch)
        yield spent


def seeds() -> None:
    """Three seeds beside one, with equal work for each: no stage passes, 3,200 samples end it.

    A process starts Python and torch, which a run of minutes does not feel and these of a second
    do: runs of no work at all are measured too and taken off. Units are indivisible: two turns of
    two processes would take 2, so that the third of three joins the first two.
    """
    base = quickstart()
    held = replace(
        base,
        protocol=replace(base.protocol, t0=20, delta=0.01, probes=(), baseline_samples=0),
        limits=Limits(largest=21, samples=3_200),
    )
    idle = replace(held, limits=Limits(largest=21, samples=1))
    for name, launcher in (("inline", Inline()), ("processes", Processes(cores=2))):
        worked, empty = (
            {f"{n} {name}": partial(run, replace(of, seeds=n), launcher) for n in (1, 3)}
            for of in (held, idle)
        )
        taken, starts = measured(worked), measured(empty, rounds=5)
        show(taken, f"1 {name}")
        one, three = (min(taken[f"{n} {name}"]) for n in (1, 3))
        first, third = (min(starts[f"{n} {name}"]) for n in (1, 3))
        print(f"    runs of no work: {first:.2f} and {third:.2f} s; three seeds of one without")
        print(f"    their starts: {(three - third) / (one - first):.2f} x")


def sampling() -> None:
    """A training batch as the engine draws it (seed, generator, ledger) beside a step on it."""
    small = quickstart()
    wide = replace(small, task=Induction(), learner=SGD(model=Transformer()))
    for title, held in (("the quickstart", small), ("Induction(), width 256", wide)):
        for size in (small.protocol.t0, 50):
            taken = measured(sampler(held, size))
            share = min(taken["sampling"]) / min(taken["step"])
            print(
                f"sampling of {title}, T={size}, batch {held.protocol.batch}: "
                f"{1e3 * min(taken['sampling']):.3f} ms of a step of "
                f"{1e3 * min(taken['step']):.1f} ms, {share:.2%}"
            )


def sampler(held: Experiment, size: int) -> dict[str, Callable[[], object]]:
    device, member = torch.device("cpu"), Member(0, held.seed(0))
    learner = held.learner.build(held.task, [held.seed(0)], device)

    def draw() -> Any:
        member.steps += 1
        generator = member.training_generator(device)
        return member.draw(held.task, generator, size, held.protocol.batch, "train")

    batch = draw()
    return {"sampling": draw, "step": lambda: learner.step([batch])}


def show(taken: Taken, beside: str) -> None:
    """Minimum and median of each, and their ratios to one of them."""
    least = {name: min(of) for name, of in taken.items()}
    middle = {name: statistics.median(of) for name, of in taken.items()}
    for name in taken:
        print(
            f"  {name:<24} minimum {least[name]:7.3f} s, {least[name] / least[beside]:6.3f} x; "
            f"median {middle[name]:7.3f} s, {middle[name] / middle[beside]:6.3f} x"
        )


if __name__ == "__main__":
    main()
