"""The loss of a batch, and the answers that outputs stand for. Shapes say which head it is.

Outputs with one axis more than the targets are logits over classes, outputs of the targets'
shape are values. On a value task class c stands for the value c, the last class for "that or more".
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from algocapture.types import Batch

ValueLoss = Literal["squared", "smooth"]
IGNORED = -100
NO_CLASS = -1  # the answer of a module whose logits are not numbers: it is never right


def total_loss(outputs: Tensor, batch: Batch, value_loss: ValueLoss) -> Tensor:
    """Sum over the masked targets: sums of micro-batches add up to that of the batch."""
    return _losses(outputs, batch.targets, batch.mask, value_loss, "sum")


def member_losses(outputs: Tensor, targets: Tensor, mask: Tensor, value_loss: ValueLoss) -> Tensor:
    """The same for each member of a stacked batch, whose first axis they are."""
    losses = _losses(outputs, targets, mask, value_loss, "none")
    return losses.unflatten(0, (len(outputs), -1)).sum(1)


def _losses(
    outputs: Tensor, targets: Tensor, mask: Tensor, value_loss: ValueLoss, reduction: str
) -> Tensor:
    """Of all targets in one row, 0 where they are not masked; or their sum."""
    if is_logits(outputs, targets):
        ids = targets.long().clamp(max=outputs.shape[-1] - 1)
        ids = torch.where(mask, ids, IGNORED)
        return F.cross_entropy(
            outputs.flatten(0, -2).float(), ids.flatten(), ignore_index=IGNORED, reduction=reduction
        )
    targets = targets.to(outputs.dtype)
    targets = torch.where(mask, targets, outputs.detach())  # no error where not masked
    loss = F.mse_loss if value_loss == "squared" else F.smooth_l1_loss
    return loss(outputs.flatten(), targets.flatten(), reduction=reduction)


def answers(outputs: Tensor, targets: Tensor) -> Tensor:
    """Class ids, or values for targets that are values; shape of the targets.

    A NaN is the largest logit to torch: without care, a module that has diverged would answer
    with class 0, and be right whenever that is.
    """
    if not is_logits(outputs, targets):
        return outputs.float()
    top, ids = outputs.max(-1)
    if targets.is_floating_point():
        return ids.to(targets.dtype).masked_fill(top.isnan(), torch.nan)
    return ids.masked_fill(top.isnan(), NO_CLASS)


def is_logits(outputs: Tensor, targets: Tensor) -> bool:
    if outputs.shape == targets.shape:
        return False
    if outputs.shape[:-1] == targets.shape and outputs.shape[-1] > 1:
        return True
    shape = tuple(targets.shape)
    raise ValueError(
        f"the module's outputs have shape {tuple(outputs.shape)}, expected logits of shape "
        f"{shape} + (classes,) with classes >= 2, or values of shape {shape}"
    )
