"""One module in training: its weights, optimiser, generator and counters."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor, nn

from algocapture.learners.base import Prediction, Step
from algocapture.learners.flops import counted_flops
from algocapture.learners.isolation import GlobalGenerator
from algocapture.learners.losses import ValueLoss, answers, total_loss
from algocapture.learners.optimisers import Optimiser
from algocapture.types import Batch

State = dict[str, np.ndarray]
GENERATOR = "generator/"
BACKWARD = 2  # a backward pass has two products for each of the forward pass


class Member:
    """Trains one module. `lr(k)` is the learning rate of step k, counted over all stages."""

    def __init__(
        self,
        module: nn.Module,
        optimiser: Optimiser,
        generator: GlobalGenerator,
        *,
        lr: Callable[[int], float],
        flops: Callable[[int], int | None],
        clip: float | None,
        value_loss: ValueLoss,
        bf16: bool,
        micro_tokens: int,
        compiled: bool,
    ) -> None:
        self.module, self.optimiser, self.generator = module, optimiser, generator
        self.lr, self.clip, self.value_loss = lr, clip, value_loss
        self.bf16, self.micro_tokens = bf16, micro_tokens
        self.call = torch.compile(module) if compiled else module
        self.steps = 0
        self._given_flops, self._flops = flops, dict[int, int]()
        first = next((p for p in module.parameters() if p.requires_grad), None)
        if first is None:
            frozen = next(module.parameters(), None) is not None
            held = "only frozen parameters" if frozen else "no parameters"
            raise ValueError(f"{type(module).__name__} has {held}: there is nothing to train")
        self.device = first.device

    def step(self, batch: Batch) -> Step:
        batch = batch.to(self.device)
        flops = (1 + BACKWARD) * len(batch) * self.forward_flops(batch.inputs)
        with self.generator.use():
            self.module.train()
            self.optimiser.clear()
            loss = self._accumulate(batch)
            if self.clip is not None:
                nn.utils.clip_grad_norm_(self.optimiser.parameters.values(), self.clip)
            self.optimiser.step(self.lr(self.steps), self.steps)
        self.steps += 1
        return Step(loss=float(loss), flops=flops)

    def _accumulate(self, batch: Batch) -> Tensor:
        """Gradient of the mean loss over all masked targets, however the batch is split."""
        targets = batch.mask.sum().clamp(min=1)
        loss = torch.zeros((), device=self.device)
        for part in self._parts(batch):
            with self._precision():
                share = total_loss(self.call(part.inputs), part, self.value_loss) / targets
            share.backward()
            loss += share.detach()
        return loss

    def predict(self, batch: Batch) -> Prediction:
        batch = batch.to(self.device)
        flops = len(batch) * self.forward_flops(batch.inputs)
        # Not inference mode: a module may keep a tensor it made here and need it in training.
        with self.generator.use(keep=False), torch.no_grad():
            self.module.eval()
            values = []
            for part in self._parts(batch):
                with self._precision():
                    values.append(answers(self.call(part.inputs), part.targets))
        return Prediction(values=torch.cat(values), flops=flops)

    def forward_flops(self, inputs: Tensor) -> int:
        """Of one instance: what the model's configuration says, else what is counted, once."""
        length = inputs.shape[1]
        if length not in self._flops:
            given = self._given_flops(length)
            if given is None:
                with self.generator.use(keep=False):
                    given = counted_flops(self.module, inputs[:1])
            self._flops[length] = given
        return self._flops[length]

    def _parts(self, batch: Batch) -> Iterator[Batch]:
        """Equal micro-batches of at most `micro_tokens` positions, or of one instance."""
        limit = max(1, self.micro_tokens // batch.inputs.shape[1])
        number = -(-len(batch) // limit)
        rows = -(-len(batch) // number)
        if number == 1:
            return iter((batch,))
        return (batch[start : start + rows] for start in range(0, len(batch), rows))

    def _precision(self) -> torch.autocast:
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.bf16)

    def state(self) -> State:
        """`model/NAME`, `optimiser/SLOT/NAME`, `generator/DEVICE`, `steps`."""
        state = {name: tensor.detach().cpu().numpy().copy() for name, tensor in self._tensors()}
        state |= {f"{GENERATOR}{name}": value for name, value in self.generator.state().items()}
        return state | {"steps": np.array(self.steps)}

    def load(self, state: State) -> None:
        tensors = dict(self._tensors())
        held = {key for key in state if key.startswith(("model/", "optimiser/"))}
        if held != set(tensors):
            raise ValueError(
                f"state is of another learner: it differs in {sorted(held ^ set(tensors))[:4]}"
            )
        for name, tensor in tensors.items():
            if state[name].shape != tuple(tensor.shape):
                raise ValueError(
                    f"state has {name} of shape {state[name].shape}, expected {tuple(tensor.shape)}"
                )
        with torch.no_grad():
            for name, tensor in tensors.items():
                tensor.copy_(torch.from_numpy(state[name]))
        self.generator.load(
            {k.removeprefix(GENERATOR): v for k, v in state.items() if k.startswith(GENERATOR)}
        )
        self.steps = int(state["steps"])

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Parameters and all buffers, one used twice but once, and what the optimiser keeps."""
        for name, tensor in (*self.module.named_parameters(), *self.module.named_buffers()):
            yield f"model/{name}", tensor
        for key, slot in self.optimiser.slots.items():
            for name, tensor in slot.items():
                yield f"optimiser/{key}/{name}", tensor
