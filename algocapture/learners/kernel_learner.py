"""The infinite-width predictor behind the interface of a learner, for the capture test.

Taking a batch appends it to the current stage's training set; the refit waits for the next
prediction. At a stage's boundary the predictor so far is frozen, and all samples of the new stage
form one residual problem, however they were batched (`KernelPredictor.adapt`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from algocapture.config import register
from algocapture.kernels.checks import check_choice, check_count, check_variance
from algocapture.kernels.encode import encode
from algocapture.kernels.transformer import InfiniteTransformer
from algocapture.learners.base import Learner, LearnerConfig, Prediction, Step
from algocapture.learners.kernel import KernelPredictor
from algocapture.rng import Seed
from algocapture.tasks.base import Task
from algocapture.types import Batch, TaskSpec


@register
@dataclass(frozen=True)
class KernelRegression(LearnerConfig):
    """How an infinite-width kernel learns: classes as one-hot targets of squared error."""

    kernel: InfiniteTransformer = InfiniteTransformer(depth=2, readout="last")  # noqa: RUF009
    kind: str = "nngp"
    ridge: float = 1e-3
    samples: int = 1024
    key_dim: int | None = None  # of queries and keys: less work, a bias of order 1/key_dim
    positions: int = 16  # frequencies of the positional features of tokens
    length_scale: float = 4.0
    strength: float = 1.0

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, ("nngp", "ntk"))
        check_choice("readout", self.kernel.readout, ("last", "mean"))
        check_variance("ridge", self.ridge)
        check_count("samples", self.samples)
        if self.key_dim is not None:
            check_count("key_dim", self.key_dim)
        check_count("positions", self.positions, least=0)

    def build(self, task: Task, seeds: Sequence[Seed], device: torch.device) -> KernelLearner:
        return KernelLearner(self, task.spec, seeds, device)

    def embed(self, inputs: Tensor, spec: TaskSpec) -> Float[Tensor, "n T d"]:
        """Inputs whose layer-0 covariances are of order 1: tokens encoded, points with marks."""
        if spec.inputs == "tokens":
            return encode(
                inputs,
                spec.vocab,
                positions=self.positions,
                length_scale=self.length_scale,
                strength=self.strength,
            )
        points = inputs.double()
        marks = points.new_zeros(*points.shape[:2], len(spec.marks))
        for i, position in enumerate(spec.marks):
            marks[:, position, i] = 1
        x = torch.cat([points, marks], -1)
        return x * math.sqrt(x.shape[-1])


class KernelLearner(Learner):
    """A population of kernel predictors, each with its own training set and draws."""

    def __init__(
        self,
        config: KernelRegression,
        spec: TaskSpec,
        seeds: Sequence[Seed],
        device: torch.device,
    ) -> None:
        self.members = len(seeds)
        self._population = [_Member(config, spec, seed, device) for seed in seeds]

    def step(self, batches: Sequence[Batch | None]) -> list[Step | None]:
        pairs = zip(self._population, batches, strict=True)
        return [None if batch is None else member.take(batch) for member, batch in pairs]

    def predict(self, batches: Sequence[Batch | None]) -> list[Prediction | None]:
        pairs = zip(self._population, batches, strict=True)
        return [None if batch is None else member.predict(batch) for member, batch in pairs]

    def begin_stage(self, member: int) -> None:
        self._population[member].begin_stage()

    def predictor(self, member: int) -> KernelPredictor:
        return self._population[member].refitted()

    def state(self) -> dict[str, np.ndarray]:
        return {
            f"{i}/{name}": value
            for i, member in enumerate(self._population)
            for name, value in member.state().items()
        }

    def load(self, state: dict[str, np.ndarray]) -> None:
        parts: dict[str, dict[str, np.ndarray]] = {}
        for key, value in state.items():
            number, _, name = key.partition("/")
            parts.setdefault(number, {})[name] = value
        known = {str(i): member for i, member in enumerate(self._population)}
        if foreign := sorted(parts.keys() - known.keys()):
            raise ValueError(f"state has a member {foreign[0]!r}; here are {', '.join(known)}")
        for number, part in parts.items():
            known[number].load(part)


@dataclass(frozen=True)
class _Group:
    """Instances that entered the training set between two predictions."""

    stage: int
    items: list[Tensor]
    targets: Tensor


class _Member:
    def __init__(
        self, config: KernelRegression, spec: TaskSpec, seed: Seed, device: torch.device
    ) -> None:
        self.config, self.spec, self.device, self.seed = config, spec, device, seed
        self._restart()

    def _restart(self) -> None:
        seed = self.seed.child("kernel").integer()
        self._predictor = KernelPredictor(
            self.config.kernel,
            self.config.kind,
            self.config.ridge,
            self.config.samples,
            seed,
            self.config.key_dim,
        )
        self._groups: list[_Group] = []  # fitted, in order: what a bit-for-bit replay needs
        self._pending: list[tuple[list[Tensor], Tensor]] = []
        self._stage = 0

    def begin_stage(self) -> None:
        self.refitted()
        self._stage = self._groups[-1].stage + 1 if self._groups else 0

    def take(self, batch: Batch) -> Step:
        if len(batch):
            items = list(self.config.embed(batch.inputs.to(self.device), self.spec).unbind(0))
            self._pending.append((items, self._targets(batch).to(self.device)))
        return Step(loss=0.0, flops=0)  # the loss is known, and the work done, at the refit

    def predict(self, batch: Batch) -> Prediction:
        new = [x for group, _ in self._pending for x in group]
        predictor = self.refitted()
        if not self._groups:
            return Prediction(torch.zeros_like(batch.targets), 0)
        items = list(self.config.embed(batch.inputs.to(self.device), self.spec).unbind(0))
        answers = torch.as_tensor(predictor.predict(items))
        if self.spec.output == "class":
            answers = answers.argmax(-1)
        flops = self._refit_flops(predictor, new) + sum(
            gram.flops(items) for gram in predictor.grams()
        )
        shape = batch.targets.shape
        answers = answers.view(-1, *[1] * (len(shape) - 1)).expand(shape)
        return Prediction(answers.to(batch.targets), flops)

    def refitted(self) -> KernelPredictor:
        """The predictor with all pending instances taken in."""
        if self._pending:
            items = [x for group, _ in self._pending for x in group]
            self._fit(_Group(self._stage, items, torch.cat([y for _, y in self._pending])))
            self._pending = []
        return self._predictor

    def _fit(self, group: _Group) -> None:
        if not self._groups:
            self._predictor.fit(group.items, group.targets)
        elif group.stage > self._groups[-1].stage:
            self._predictor.adapt(group.items, group.targets)
        else:
            self._predictor.extend(group.items, group.targets)
        self._groups.append(group)

    def _refit_flops(self, predictor: KernelPredictor, new: list[Tensor]) -> int:
        """Of the Gram's new rows and of the new solution."""
        if not new:
            return 0
        gram = predictor.grams()[-1]
        return gram.flops(new, appended=True) + gram.matrix().shape[-1] ** 3 // 3

    def _targets(self, batch: Batch) -> Tensor:
        """The one answer of each instance: one-hot for classes."""
        answers = batch.targets
        if answers.ndim > 1:
            if not bool((batch.mask.flatten(1).sum(1) == 1).all()):
                raise ValueError(
                    f"targets of shape {tuple(answers.shape)} with several trained positions: a "
                    "kernel with one readout learns tasks with one answer an instance"
                )
            answers = answers[batch.mask]
        if self.spec.output == "class":
            return F.one_hot(answers, self.spec.classes).double()
        return answers.double()

    def state(self) -> dict[str, np.ndarray]:
        groups = [*self._groups]
        fitted = len(groups)
        groups += [_Group(self._stage, items, targets) for items, targets in self._pending]
        out = {
            "stages": np.array([g.stage for g in groups], dtype=np.int64),
            "fitted": np.array([fitted, self._stage], dtype=np.int64),
        }
        for i, g in enumerate(groups):
            lengths = [len(x) for x in g.items]
            out[f"group/{i}/lengths"] = np.array(lengths, dtype=np.int64)
            out[f"group/{i}/tokens"] = torch.cat(g.items).cpu().numpy()
            out[f"group/{i}/targets"] = g.targets.cpu().numpy()
        return out

    def load(self, state: dict[str, np.ndarray]) -> None:
        self._restart()
        fitted, stage = (int(x) for x in state["fitted"])
        for i, group_stage in enumerate(state["stages"].tolist()):
            tokens = torch.as_tensor(np.array(state[f"group/{i}/tokens"])).to(self.device)
            targets = torch.as_tensor(np.array(state[f"group/{i}/targets"])).to(self.device)
            items = list(tokens.split(state[f"group/{i}/lengths"].tolist()))
            if i < fitted:
                self._fit(_Group(group_stage, items, targets))
            else:
                self._pending.append((items, targets))
        self._stage = stage
