"""Looks at a member: fresh instances, a sequential test, an account of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from algocapture.learners.base import Learner
from algocapture.protocol.labels import SeenLabels, Split
from algocapture.protocol.member import Member
from algocapture.protocol.plan import Protocol
from algocapture.stats.sequential import Look, confidence_interval
from algocapture.tasks.base import Task
from algocapture.tasks.counting import counting
from algocapture.types import Batch, torch_generator


class Examiner:
    """Everything that is evaluated; nothing here is ever trained on."""

    def __init__(
        self,
        task: Task,
        protocol: Protocol,
        learner: Learner,
        members: Sequence[Member],
        device: torch.device,
    ) -> None:
        self.task, self.protocol, self.learner = task, protocol, learner
        self.members, self.device = members, device
        self.seen = [SeenLabels(device) for _ in members]

    def look(self, due: Sequence[Member]) -> list[dict[str, Any]]:
        """One look at each member: chunks of fresh instances until the test has decided."""
        size = self.protocol.size(due[0].stage)
        tests = {m.number: self.protocol.test.look(self.protocol.delta) for m in due}
        splits = {m.number: Split() for m in due}
        missed = {m.number: 0 for m in due}  # instances with any error
        decisions: dict[int, str] = {}
        chunk = 0
        while open_ := [m for m in due if m.number not in decisions]:
            generators = {m.number: m.looking_generator(chunk, self.device) for m in open_}
            for number, (errors, split) in self._errors(
                open_, generators, size, self.protocol.test.chunk, with_split=True
            ).items():
                splits[number] = splits[number] + split
                missed[number] += int((errors > 0).sum())
                if (decision := tests[number].update(errors)) != "more":
                    decisions[number] = decision
            chunk += 1
        return [
            _record(m.steps * self.protocol.batch, size, tests[m.number], missed[m.number])
            | {"decision": decisions[m.number]}
            | splits[m.number].to_json()
            for m in due
        ]

    def after(self, member: Member) -> dict[str, Any]:
        """What is recorded of a passed stage beside its looks."""
        size = self.protocol.size(member.stage)
        probes = [
            self.probe(member, round(size * multiple), self.protocol.probe_samples, "probe")
            for multiple in self.protocol.probes
        ]
        return {"probes": probes, "baselines": self._baselines(member, size)}

    def probe(self, member: Member, size: int, samples: int, purpose: str) -> dict[str, Any]:
        """The error at any size, as the member is."""
        generator = torch_generator(member.seed.child(purpose, member.stage, size), self.device)
        ((errors, _),) = self._errors([member], {member.number: generator}, size, samples).values()
        low, high = confidence_interval(errors)
        return {"size": size, "n": len(errors), "error": float(errors.mean()), "low": low} | {
            "high": high
        }

    def _baselines(self, member: Member, size: int) -> dict[str, float]:
        n = self.protocol.baseline_samples
        if n == 0:
            return {}
        generator = torch_generator(member.seed.child("baseline", member.stage), self.device)
        counted = counting(self.task)
        errors = counted.task.baselines(size, n, generator)
        member.ledger.charge(member.name, "baseline", samples=counted.samples())
        return {name: float(error) for name, error in errors.items()}

    def _errors(
        self,
        members: Sequence[Member],
        generators: dict[int, torch.Generator],
        size: int,
        n: int,
        with_split: bool = False,
    ) -> dict[int, tuple[np.ndarray, Split]]:
        batches: list[Batch | None] = [None] * len(self.members)
        for member in members:
            generator = generators[member.number]
            batches[member.number] = member.draw(self.task, generator, size, n, "evaluate")
        predictions = self.learner.predict(batches)
        found = {}
        for member in members:
            prediction, batch = predictions[member.number], batches[member.number]
            assert prediction is not None
            assert batch is not None
            member.ledger.charge(member.name, "evaluate", flops=prediction.flops)
            errors = self.task.error(prediction.values, batch).cpu().numpy()
            seen = self.seen[member.number]
            split = seen.split(self.task, prediction.values, batch) if with_split else Split()
            found[member.number] = (errors, split)
        return found


def _record(samples: int, size: int, look: Look, missed: int) -> dict[str, Any]:
    low, high = look.interval
    return {
        "samples": samples,
        "size": size,
        "n": look.n,
        "error": look.mean,
        "low": low,
        "high": high,
        "instance_error": missed / look.n,
    }
