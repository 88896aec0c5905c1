"""Greedy decoding, so that an autoregressive task can be scored by whole instances.

Teacher forcing shows the model the right tokens so far; here it reads what it wrote itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from algocapture.learners.base import Learner
from algocapture.tasks.base import Task
from algocapture.types import Batch


@dataclass(frozen=True)
class Decoded:
    """What one member wrote: ids of shape (n, steps), and the FLOPs it took."""

    ids: Tensor
    flops: int


def decode(learner: Learner, prompts: Sequence[Tensor | None], steps: int) -> list[Decoded | None]:
    """Each member continues its prompts (n, length) by `steps` tokens, the likeliest each time.

    Every token is a full forward pass; none is kept for the next. Cost grows with the cube of
    the size for attention, so decode small batches.
    """
    texts = list(prompts)
    flops = [0] * len(texts)
    for _ in range(steps):
        answers = learner.predict([None if t is None else _as_batch(t) for t in texts])
        for i, (text, answer) in enumerate(zip(texts, answers, strict=True)):
            if text is None or answer is None:
                continue
            if answer.values.shape != text.shape or answer.values.is_floating_point():
                raise ValueError(
                    f"decoding needs a class id at every position of {tuple(text.shape)}, got "
                    f"{answer.values.dtype} of shape {tuple(answer.values.shape)}"
                )
            texts[i] = torch.cat((text, answer.values[:, -1:].to(text)), 1)
            flops[i] += answer.flops
    return [
        None if text is None else Decoded(text[:, text.shape[1] - steps :], spent)
        for text, spent in zip(texts, flops, strict=True)
    ]


def decoded_error(
    task: Task, learner: Learner, batches: Sequence[Batch | None]
) -> list[Tensor | None]:
    """For each member 1 where an instance's answer, written by the member itself, is not exact."""
    active = [batch for batch in batches if batch is not None]
    if not active:
        return [None] * len(batches)
    first = first_scored(task, active[0])
    prompts = [None if batch is None else batch.inputs[:, : first + 1] for batch in batches]
    written = decode(learner, prompts, active[0].targets.shape[1] - first)
    errors: list[Tensor | None] = []
    for batch, out in zip(batches, written, strict=True):
        if batch is None or out is None:
            errors.append(None)
        else:
            answer = batch.targets[:, first_scored(task, batch) :]
            errors.append((out.ids.to(answer) != answer).any(1).double())
    return errors


def first_scored(task: Task, batch: Batch) -> int:
    """Where the answer begins, in a task whose inputs hold the targets one place later."""
    name = type(task).__name__
    if batch.targets.shape != batch.inputs.shape:
        raise ValueError(f"{name} is not autoregressive: it has no target at every position")
    scored = task.scored(batch)
    first = int(scored[0].int().argmax())
    suffix = (torch.arange(scored.shape[1], device=scored.device) >= first).expand_as(scored)
    if not torch.equal(scored, suffix):
        raise ValueError(f"{name} is not autoregressive: what is scored is not a suffix")
    if not torch.equal(batch.inputs[:, first + 1 :], batch.targets[:, first:-1]):
        raise ValueError(f"{name} is not autoregressive: its inputs do not hold its targets")
    return first


def _as_batch(text: Tensor) -> Batch:
    """A prompt as a batch whose targets say only that an id is wanted at every position.

    Where a member wrote no class (its logits were not numbers) it reads class 0."""
    text = text.clamp(min=0)
    return Batch(text, torch.zeros_like(text), torch.zeros_like(text, dtype=torch.bool), 1)
