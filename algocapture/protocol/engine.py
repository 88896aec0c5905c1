"""The capture test of one unit of work: a population goes through the stages of a protocol.

`advance` does the smallest thing that may be followed by a checkpoint, one training step or
one look, and says what happened. Batches come from named seeds (stage, step), so that the
engine's state holds counters instead of generators and a resumed run draws what an
uninterrupted one would have drawn.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch

from algocapture.learners.base import LearnerConfig
from algocapture.protocol.ahead import Ahead, Request
from algocapture.protocol.events import Decided, Event, Looked, Trained
from algocapture.protocol.examine import Examiner
from algocapture.protocol.member import Member
from algocapture.protocol.plan import DIVERGED, Limits, Protocol
from algocapture.protocol.records import stage_record
from algocapture.rng import Seed
from algocapture.tasks.base import Task
from algocapture.types import Batch


class Engine:
    """A population on its way through the stages."""

    def __init__(
        self,
        task: Task,
        learner: LearnerConfig,
        protocol: Protocol,
        limits: Limits,
        seeds: Sequence[Seed],
        device: torch.device,
        workers: int | None = None,  # threads that make batches ahead; None: all cores for a GPU
    ) -> None:
        self.task, self.protocol, self.limits, self.device = task, protocol, limits, device
        self.members = [Member(number, seed) for number, seed in enumerate(seeds)]
        self.learner = learner.build(task, [seed.child("learner") for seed in seeds], device)
        self.examiner = Examiner(task, protocol, self.learner, self.members, device)
        if workers is None:
            workers = len(os.sched_getaffinity(0)) if device.type == "cuda" else 0
        self._ahead = Ahead(task, device, workers, len(seeds)) if workers else None
        self._base: dict[str, np.ndarray] = {}  # members as they passed stage 0 (whole interval)

    def advance(self) -> list[Event]:
        """One step or one look of the members at the earliest stage; [] when all are done.

        Members of one stage go in step, so that a stacked population keeps equal shapes.
        """
        acting = self._acting()
        if not acting:
            return []
        for member in acting:
            if not member.begun:
                self._enter(member)
        due = [m for m in acting if m.steps == m.next_look]
        if due:
            return self._look(due)
        return self._train([m for m in acting if m.steps == acting[0].steps])

    def _acting(self) -> list[Member]:
        running = [m for m in self.members if not self._done(m)]
        earliest = min((m.stage for m in running), default=0)
        return [m for m in running if m.stage == earliest]

    def _done(self, member: Member) -> bool:
        if member.censored is not None:
            return True
        return self.protocol.size(member.stage) > self.limits.largest

    def _enter(self, member: Member) -> None:
        """The first look of a stage comes before any training: a stage may cost nothing."""
        if not self.protocol.cumulative and member.stage > 0:
            self.learner.load(_part(self._base, member.number))
        self.learner.begin_stage(member.number)
        if self._ahead is not None:
            self._ahead.drop()
        member.next_look = self.protocol.first_look(member.stage)
        member.begun = True

    def _train(self, acting: list[Member]) -> list[Event]:
        stage, batches = acting[0].stage, self._none()
        for member in acting:
            batches[member.number] = batch = self._training_batch(member)
            if stage == 0:
                self.examiner.seen[member.number].add(batch)
        steps = self.learner.step(batches)
        events: list[Event] = []
        losses = {}
        for member in acting:
            step = steps[member.number]
            assert step is not None, "an active member took no step"
            member.ledger.charge(member.name, "train", flops=step.flops)
            member.steps += 1
            losses[member.number] = step.loss
            if not math.isfinite(step.loss):
                member.censored = DIVERGED
                events.append(self._decide(member, "censored"))
        samples = {m.number: m.steps * self.protocol.batch for m in acting}
        return [Trained(stage, self.protocol.size(stage), losses, samples), *events]

    def _training_batch(self, member: Member) -> Batch:
        """Sizes of the grid in a random order, each once before any comes again. All seeds of a
        root share the order, so that the batches of a stacked population are of one size."""
        seed, size, n = self._request(member, 0)
        if self._ahead is None or self.task.on_gpu(size):
            generator = member.training_generator(self.device)
            return member.draw(self.task, generator, size, n, "train")
        made = self._ahead.take((seed, size, n), partial(self._request, member))
        return member.ledger.draw(lambda _: made, n, stage=member.name, account="train")

    def _request(self, member: Member, later: int) -> Request:
        """The batch that a member trains on, so many steps from now."""
        sizes = self.protocol.training_sizes(member.stage, self.task.spec.smallest)
        number = member.steps + later
        turn, place = divmod(number, len(sizes))
        if len(sizes) > 1:
            order = Seed(member.seed.root).child("order", member.stage, turn)
            place = _order(order, len(sizes))[place]
        return member.training_seed(number), sizes[place], self.protocol.batch

    def _look(self, due: list[Member]) -> list[Event]:
        events: list[Event] = []
        for member, look in zip(due, self.examiner.look(due), strict=True):
            member.looks.append(look)
            events.append(Looked(member.number, member.stage, look["size"], look))
            if look["decision"] == "pass":
                events.append(self._decide(member, "passed"))
                continue
            member.low = look["samples"]
            following = self.protocol.look_after(member.stage, member.steps)
            if following is None:
                events.append(self._decide(member, "failed"))
                continue
            member.next_look = following
            if (limit := self._limit(member)) is not None:
                member.censored = limit
                events.append(self._decide(member, "censored"))
        return events

    def _limit(self, member: Member) -> str | None:
        flops = member.ledger.spent(stage=member.name, account="train").flops
        following = member.next_look * self.protocol.batch
        return self.limits.binding(self.protocol, len(member.looks), following, flops)

    def _decide(self, member: Member, outcome: str) -> Decided:
        extras = self.examiner.after(member) if outcome == "passed" else {}
        record = stage_record(member, self.protocol, self.task, outcome, extras)
        if outcome == "passed" and member.stage == 0 and not self.protocol.cumulative:
            self._base |= _part(self.learner.state(), member.number)
        if outcome != "censored":
            member.next_stage(cumulative=self.protocol.cumulative, batch=self.protocol.batch)
        return Decided(member.number, record)

    def _none(self) -> list[Batch | None]:
        return [None] * len(self.members)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and JSON from which `load` continues bit for bit."""
        arrays = {f"learner/{k}": v for k, v in self.learner.state().items()}
        arrays |= {f"base/{k}": v for k, v in self._base.items()}
        arrays |= {f"seen/{i}": seen.state() for i, seen in enumerate(self.examiner.seen)}
        return arrays, {"members": [m.to_json() for m in self.members]}

    def load(self, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
        """Continue; a member that a limit had ended goes on if the limits are larger now."""
        self.learner.load(_under(arrays, "learner/"))
        self._base = _under(arrays, "base/")
        for number, member in enumerate(self.members):
            member.load(meta["members"][number])
            self.examiner.seen[number].load(arrays[f"seen/{number}"])
            if member.censored not in (None, DIVERGED):
                member.censored = self._limit(member)


@lru_cache(maxsize=64)  # a turn's order serves all its steps
def _order(seed: Seed, number: int) -> list[int]:
    order: list[int] = seed.numpy().permutation(number).tolist()
    return order


def _under(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def _part(state: dict[str, np.ndarray], number: int) -> dict[str, np.ndarray]:
    """One member's share of a population's state: the keys that start with its number."""
    return {k: v for k, v in state.items() if k.startswith(f"{number}/")}
