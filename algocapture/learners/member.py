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
from algocapture.types import Batch

State = dict[str, np.ndarray]
BACKWARD = 2  # a backward pass has two products for each of the forward pass


class Member:
    """Trains one module. `lr(k)` is the learning rate of step k, counted over all stages."""

    def __init__(
        self,
        module: nn.Module,
        optimiser: torch.optim.Optimizer,
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
        self.device = next(module.parameters()).device

    def step(self, batch: Batch) -> Step:
        batch = batch.to(self.device)
        flops = (1 + BACKWARD) * len(batch) * self.forward_flops(batch.inputs)
        with self.generator.use():
            self.module.train()
            self.optimiser.zero_grad(set_to_none=True)
            loss = self._accumulate(batch)
            if self.clip is not None:
                nn.utils.clip_grad_norm_(self.module.parameters(), self.clip)
            for group in self.optimiser.param_groups:
                group["lr"] = self.lr(self.steps)
            self.optimiser.step()
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
        return (batch[start : start + rows] for start in range(0, len(batch), rows))

    def _precision(self) -> torch.autocast:
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.bf16)

    def state(self) -> State:
        """`model/NAME`, `optimiser/NAME/KEY`, `generator/DEVICE`, `steps`."""
        state = {f"model/{name}": _numpy(value) for name, value in self._tensors()}
        for name, parameter in self.module.named_parameters():
            for key, value in self.optimiser.state.get(parameter, {}).items():
                if value is not None:
                    state[f"optimiser/{name}/{key}"] = _numpy(value)
        state |= {f"generator/{name}": value for name, value in self.generator.state().items()}
        return state | {"steps": np.array(self.steps)}

    def load(self, state: State) -> None:
        tensors = dict(self._tensors())
        held = {key.removeprefix("model/") for key in state if key.startswith("model/")}
        if held != set(tensors):
            raise ValueError(
                f"state is of another module: it differs in {sorted(held ^ set(tensors))[:5]}"
            )
        with torch.no_grad():
            for name, tensor in tensors.items():
                array = state[f"model/{name}"]
                if array.shape != tuple(tensor.shape):
                    raise ValueError(
                        f"state has {name} of shape {array.shape}, expected {tuple(tensor.shape)}"
                    )
                tensor.copy_(torch.from_numpy(array))
        self._load_optimiser(state)
        prefix = "generator/"
        self.generator.load(
            {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
        )
        self.steps = int(state["steps"])

    def _load_optimiser(self, state: State) -> None:
        names = {parameter: name for name, parameter in self.module.named_parameters()}
        groups = self.optimiser.state_dict()["param_groups"]
        held: dict[int, dict[str, Tensor]] = {}
        for described, group in zip(groups, self.optimiser.param_groups, strict=True):
            for index, parameter in zip(described["params"], group["params"], strict=True):
                prefix = f"optimiser/{names[parameter]}/"
                entries = {
                    key.removeprefix(prefix): torch.from_numpy(value.copy())
                    for key, value in state.items()
                    if key.startswith(prefix)
                }
                if entries:
                    held[index] = entries
        # torch's own loader knows which entries belong on the device.
        self.optimiser.load_state_dict({"state": held, "param_groups": groups})

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Parameters and all buffers; a parameter used twice appears once."""
        yield from self.module.named_parameters()
        yield from self.module.named_buffers()


def _numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy().copy()
