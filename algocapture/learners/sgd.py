"""Gradient descent on modules: any model configuration, any user's nn.Module.

FLOPs of a step are three times those of the forward pass (a backward pass has two products for
each of the forward pass): `ModelConfig.flops` where given, else counted once for each length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import nn

from algocapture.config import register
from algocapture.learners.base import Learner, LearnerConfig, Prediction, Step
from algocapture.learners.isolation import GlobalGenerator
from algocapture.learners.losses import ValueLoss
from algocapture.learners.member import Member
from algocapture.learners.optimisers import AdamW, Momentum, Optimiser
from algocapture.models.base import ModelConfig
from algocapture.models.checks import check_bool, check_choice, check_integer, check_number
from algocapture.rng import Seed
from algocapture.tasks.base import Task
from algocapture.types import Batch, TaskSpec, torch_generator


@register
@dataclass(frozen=True)
class SGD(LearnerConfig):
    """How modules are trained; the same for all sizes, and never re-warmed between stages."""

    model: ModelConfig
    optimiser: Literal["adamw", "sgd"] = "adamw"
    lr: float = 1e-3
    weight_decay: float = 0.0  # of matrices only; with adamw decoupled
    betas: tuple[float, float] = (0.9, 0.95)
    momentum: float = 0.0
    warmup: int = 100  # steps over which lr grows linearly from the start of stage one
    clip: float | None = 1.0  # largest norm of the gradient
    value_loss: ValueLoss = "squared"
    precision: Literal["float32", "bf16"] = "float32"  # bf16: autocast, master weights float32
    micro_tokens: int = 65_536  # positions in one forward pass: splits batches, not their size
    compile: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.model, ModelConfig):
            raise ValueError(
                f"model must be a ModelConfig such as Transformer(), got {self.model!r}"
            )
        check_choice("optimiser", self.optimiser, ("adamw", "sgd"))
        check_number("lr", self.lr, 0, above=True)
        for name in ("weight_decay", "momentum"):
            check_number(name, getattr(self, name), 0)
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas must be two numbers in [0, 1), got {self.betas!r}")
        check_integer("warmup", self.warmup, 0)
        if self.clip is not None:
            check_number("clip", self.clip, 0, above=True)
        check_choice("value_loss", self.value_loss, ("squared", "smooth"))
        check_choice("precision", self.precision, ("float32", "bf16"))
        check_integer("micro_tokens", self.micro_tokens, 1)
        check_bool("compile", self.compile)

    def build(self, task: Task, seeds: Sequence[Seed], device: torch.device) -> SGDLearner:
        return SGDLearner([self._member(task.spec, seed, device) for seed in seeds])

    def learning_rate(self, step: int) -> float:
        return self.lr * min(1.0, (step + 1) / max(1, self.warmup))

    def _member(self, spec: TaskSpec, seed: Seed, device: torch.device) -> Member:
        generator = GlobalGenerator(seed.child("global"), device)
        with generator.use():
            module = self.model.build(spec, torch_generator(seed.child("model"))).to(device)
        for name, parameter in module.named_parameters():
            if parameter.dtype not in (torch.float32, torch.float64):
                raise ValueError(
                    f"parameter {name} is {parameter.dtype}: build float32 or float64 weights "
                    "and choose precision='bf16' for the arithmetic"
                )
        return Member(
            module,
            self._optimiser(module),
            generator,
            lr=self.learning_rate,
            flops=partial(self.model.flops, spec),
            clip=self.clip,
            value_loss=self.value_loss,
            bf16=self.precision == "bf16",
            micro_tokens=self.micro_tokens,
            compiled=self.compile,
        )

    def _optimiser(self, module: nn.Module) -> Optimiser:
        parameters = dict(module.named_parameters())
        if self.optimiser == "sgd":
            return Momentum(parameters, self.weight_decay, self.momentum)
        return AdamW(parameters, self.weight_decay, self.betas)


class SGDLearner(Learner):
    """A loop over members: each has weights, optimiser and generator of its own."""

    def __init__(self, population: Sequence[Member]) -> None:
        if not population:
            raise ValueError("seeds is empty: a population needs at least one member")
        self.population = list(population)
        self.members = len(self.population)

    def module(self, member: int) -> nn.Module:
        return self.population[member].module

    def step(self, batches: Sequence[Batch | None]) -> list[Step | None]:
        pairs = zip(self.population, batches, strict=True)
        return [None if batch is None else member.step(batch) for member, batch in pairs]

    def predict(self, batches: Sequence[Batch | None]) -> list[Prediction | None]:
        pairs = zip(self.population, batches, strict=True)
        return [None if batch is None else member.predict(batch) for member, batch in pairs]

    def state(self) -> dict[str, np.ndarray]:
        return {
            f"{i}/{name}": value
            for i, member in enumerate(self.population)
            for name, value in member.state().items()
        }

    def load(self, state: dict[str, np.ndarray]) -> None:
        parts: dict[str, dict[str, np.ndarray]] = {}
        for key, value in state.items():
            number, _, name = key.partition("/")
            parts.setdefault(number, {})[name] = value
        known = {str(i): member for i, member in enumerate(self.population)}
        if foreign := sorted(parts.keys() - known.keys()):
            raise ValueError(f"state has a member {foreign[0]!r}; here are {', '.join(known)}")
        for number, part in parts.items():
            known[number].load(part)
