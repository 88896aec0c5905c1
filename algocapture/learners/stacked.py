"""All seeds of a population as one stacked network: for a GPU, which one small model leaves idle.

Each member has its own batches, gradient norm, step count and passing; a member that waits is
multiplied by 0 in every update. Steps of a shape that comes often are captured as CUDA graphs;
with `compile` their elementwise kernels are fused, once for all lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from algocapture.config import register
from algocapture.learners.base import Learner, LearnerConfig, Prediction, Step
from algocapture.learners.losses import answers, member_losses
from algocapture.learners.member import BACKWARD
from algocapture.learners.sgd import SGD
from algocapture.models.stacked import Layout, StackedTransformer, flatten
from algocapture.models.transformer import Transformer, TransformerModule
from algocapture.rng import Seed
from algocapture.tasks.base import Task
from algocapture.types import Batch, torch_generator

EPS = 1e-8  # of AdamW
OFTEN = 12  # steps of one shape before it is captured: a capture costs about as much


@register
@dataclass(frozen=True)
class Stacked(LearnerConfig):
    """Train the seeds of a unit (`Experiment.population`) side by side."""

    training: SGD

    def __post_init__(self) -> None:
        if not isinstance(self.training.model, Transformer) or self.training.optimiser != "adamw":
            raise ValueError(
                "training must be of a Transformer by 'adamw', got "
                f"{type(self.training.model).__name__} and {self.training.optimiser!r}"
            )

    def build(self, task: Task, seeds: Sequence[Seed], device: torch.device) -> Learner:
        model, modules = self.training.model, []
        for seed in seeds:
            module = model.build(task.spec, torch_generator(seed.child("model")))
            assert isinstance(module, TransformerModule)
            modules.append(module)
        assert isinstance(model, Transformer)
        plain = StackedTransformer(model, task.spec, Layout.of(modules[0]))
        return StackedLearner(self.training, plain, flatten(modules).to(device))


class StackedLearner(Learner):
    """Members are rows: of weights and of AdamW's two means."""

    def __init__(
        self,
        config: SGD,
        plain: StackedTransformer,
        rows: Tensor,
    ) -> None:
        self.config, self.layout = config, plain.layout
        self.plain = plain  # for some of the members, whose number a compilation would hold fixed
        self.network = plain.compiled() if config.compile else plain
        self.members = len(rows)
        self.device = rows.device
        self.rows = rows.clone().requires_grad_()
        self.slots = {"mean": torch.zeros_like(rows), "square": torch.zeros_like(rows)}
        self.decayed = self.layout.decayed().to(rows)
        self.counts = [0] * self.members
        # For each member: whether it acts, the step size, the decay, the scale of sqrt(square).
        self.control = torch.zeros(4, self.members, 1, device=self.device)
        self.update = self._update
        if config.compile and self.device.type == "cuda":  # inductor fails at it on a CPU
            self.update = torch.compile(self._update, fullgraph=True)
        self.graphs: dict[tuple[torch.Size, torch.Size], _Graph] = {}
        self.seen: dict[tuple[torch.Size, torch.Size], int] = {}
        self._former: _Reading | None = None

    def begin_stage(self, member: int) -> None:
        """Sizes change with the stage: captured steps of the last one are of no use."""
        self.graphs.clear()
        self.seen.clear()

    def step(self, batches: Sequence[Batch | None]) -> list[Step | None]:
        active = [batch is not None for batch in batches]
        batch = _stack([b for b in batches if b is not None], active)
        self._steer(active)
        losses = self._losses(self._run(batch))
        for member, acts in enumerate(active):
            self.counts[member] += acts
        flops = (1 + BACKWARD) * self._forward_flops(batch)
        return [Step(losses[m], flops) if acts else None for m, acts in enumerate(active)]

    def _losses(self, losses: Tensor) -> list[float]:
        """On a GPU those of the step before: reading them does not wait for this step."""
        if self.device.type == "cpu":
            return losses.tolist()  # type: ignore[no-any-return]
        former, self._former = self._former, _Reading(losses)
        return (former or self._former).values()

    def _steer(self, active: list[bool]) -> None:
        (b1, b2), decay = self.config.betas, self.config.weight_decay
        columns = []
        for acts, count in zip(active, self.counts, strict=True):
            lr = self.config.learning_rate(count)
            columns.append(
                (
                    float(acts),
                    acts * lr / (1 - b1 ** (count + 1)),
                    acts * lr * decay,
                    (1 - b2 ** (count + 1)) ** -0.5,
                )
            )
        self.control.copy_(torch.tensor(columns, dtype=torch.float64).T[..., None])

    def _run(self, batch: Batch) -> Tensor:
        if self.device.type == "cpu" or len(self._parts(batch)) > 1:
            return self.train(batch)
        key = (batch.inputs.shape, batch.targets.shape)
        self.seen[key] = self.seen.get(key, 0) + 1
        if self.seen[key] <= OFTEN:
            return self.train(batch)
        if key not in self.graphs:
            self.graphs[key] = _Graph(self, batch)
        return self.graphs[key].replay(batch)

    def train(self, batch: Batch) -> Tensor:
        """One step on a stacked batch; the loss of each member."""
        count = batch.mask.flatten(1).sum(1).clamp(min=1)
        first, *others = self._parts(batch)
        losses, gradient = self._gradient(first, count)
        for part in others:
            share, more = self._gradient(part, count)
            losses, gradient = losses + share, gradient.add_(more)
        with torch.no_grad():
            self.update(self.rows, gradient, *self.slots.values())
        return losses

    def _gradient(self, part: Batch, count: Tensor) -> tuple[Tensor, Tensor]:
        """A micro-batch's share of each member's loss, and of its gradient."""
        outputs = self.network(self.rows, part.inputs, self.low)
        summed = member_losses(outputs, part.targets, part.mask, self.config.value_loss)
        (gradient,) = torch.autograd.grad((summed / count).sum(), self.rows)
        return (summed / count).detach(), gradient

    def _update(self, rows: Tensor, grad: Tensor, mean: Tensor, square: Tensor) -> None:
        """AdamW after clipping, row by row; a row that waits moves by 0."""
        acts, size, decay, unbias = self.control
        b1, b2 = self.config.betas
        if self.config.clip is not None:
            norm = torch.linalg.vector_norm(grad, dim=1, keepdim=True)
            grad = grad * (self.config.clip / (norm + 1e-6)).clamp(max=1)
        mean.add_(acts * (grad - mean), alpha=1 - b1)
        square.add_(acts * (grad.square() - square), alpha=1 - b2)
        rows.sub_(decay * self.decayed * rows)
        rows.sub_(size * mean / (square.sqrt() * unbias + EPS))

    @property
    def low(self) -> torch.dtype:
        return torch.bfloat16 if self.config.precision == "bf16" else self.rows.dtype

    def predict(self, batches: Sequence[Batch | None]) -> list[Prediction | None]:
        members = [m for m, batch in enumerate(batches) if batch is not None]
        batch = _stack([b for b in batches if b is not None], [True] * len(members))
        with torch.no_grad():
            every = len(members) == self.members
            rows, network = (self.rows, self.network) if every else (self.rows[members], self.plain)
            values = [
                answers(network(rows, part.inputs, self.low), part.targets)
                for part in self._parts(batch)
            ]
        flops = self._forward_flops(batch)
        found: list[Prediction | None] = [None] * self.members
        for member, value in zip(members, torch.cat(values, 1), strict=True):
            found[member] = Prediction(value, flops)
        return found

    def _parts(self, batch: Batch) -> list[Batch]:
        """Equal micro-batches of at most `micro_tokens` positions over all members."""
        members, n, length = batch.inputs.shape[:3]
        limit = max(1, self.config.micro_tokens // (members * length))
        rows = -(-n // -(-n // limit))
        return [
            Batch(
                batch.inputs[:, i : i + rows],
                batch.targets[:, i : i + rows],
                batch.mask[:, i : i + rows],
                batch.size,
            )
            for i in range(0, n, rows)
        ]

    def _forward_flops(self, batch: Batch) -> int:
        n, length = batch.inputs.shape[1:3]
        return n * self.network.config.flops(self.network.spec, length)

    def state(self) -> dict[str, np.ndarray]:
        """As of `SGDLearner`: `MEMBER/model/NAME`, `MEMBER/optimiser/SLOT/NAME`, `MEMBER/steps`."""
        state = {f"{m}/steps": np.array(count) for m, count in enumerate(self.counts)}
        for prefix, rows in self._tensors():
            for name, weights in self.layout.split(rows.detach()).items():
                for member, weight in enumerate(weights.cpu().numpy()):
                    state[f"{member}/{prefix}/{name}"] = weight.copy()
        return state

    def load(self, state: dict[str, np.ndarray]) -> None:
        for member in sorted({int(key.partition("/")[0]) for key in state}):
            self.counts[member] = int(state[f"{member}/steps"])
            for prefix, rows in self._tensors():
                held = (
                    torch.from_numpy(state[f"{member}/{prefix}/{name}"])
                    for name in self.layout.names
                )
                with torch.no_grad():
                    rows[member] = self.layout.row(held).to(rows)
        self._former = None

    def _tensors(self) -> list[tuple[str, Tensor]]:
        slots = [(f"optimiser/{key}", slot) for key, slot in self.slots.items()]
        return [("model", self.rows), *slots]


class _Graph:
    """A captured step on a shape: the same kernels, launched at once."""

    def __init__(self, learner: StackedLearner, batch: Batch) -> None:
        self.held = Batch(batch.inputs.clone(), batch.targets.clone(), batch.mask.clone(), 0)
        self.graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(self.graph):
            self.losses = learner.train(self.held)

    def replay(self, batch: Batch) -> Tensor:
        self.held.inputs.copy_(batch.inputs)
        self.held.targets.copy_(batch.targets)
        self.held.mask.copy_(batch.mask)
        self.graph.replay()
        return self.losses


class _Reading:
    """Values on their way to the host: taken after a step, read when the next is on its way."""

    def __init__(self, values: Tensor) -> None:
        self.held = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
        self.held.copy_(values, non_blocking=True)
        self.arrived = torch.cuda.Event()
        self.arrived.record()

    def values(self) -> list[float]:
        self.arrived.synchronize()
        return self.held.tolist()  # type: ignore[no-any-return]


def _stack(batches: list[Batch], active: list[bool]) -> Batch:
    """One batch with a leading member dimension; a member that waits gets any batch."""
    given = iter(batches)
    each = [next(given) if acts else batches[0] for acts in active]
    return Batch(
        torch.stack([b.inputs for b in each]),
        torch.stack([b.targets for b in each]),
        torch.stack([b.mask for b in each]),
        each[0].size,
    )
