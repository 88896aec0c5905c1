"""Shortcut classifiers: a linear map of counts, fitted in closed form."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from algocapture.tasks.base import Task
from algocapture.types import Batch


def token_counts(tokens: Tensor, vocab: int) -> Tensor:
    """How often each token occurs, (n, vocab) float64."""
    counts = torch.zeros(len(tokens), vocab, dtype=torch.float64, device=tokens.device)
    return counts.scatter_add_(1, tokens, torch.ones_like(tokens, dtype=torch.float64))


def bigram_counts(tokens: Tensor, vocab: int) -> Tensor:
    """How often each pair of neighbours occurs, (n, vocab * vocab) float64."""
    return token_counts(tokens[:, :-1] * vocab + tokens[:, 1:], vocab * vocab)


def linear_error(
    task: Task, features: Callable[[Tensor], Tensor], fitted: Batch, fresh: Batch
) -> float:
    """Mean error on `fresh` of a ridge classifier of two classes, trained on `fitted`."""
    x, signs = features(fitted.inputs), 2.0 * fitted.targets.double() - 1.0
    mean, scale = x.mean(0), x.std(0).clamp(min=1e-9)
    x = (x - mean) / scale
    # One unit of ridge per feature: weak beside thousands of instances, and never singular.
    gram = x.T @ x + x.shape[1] * torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
    weights = torch.linalg.solve(gram, x.T @ (signs - signs.mean()))
    values = (features(fresh.inputs) - mean) / scale @ weights + signs.mean()
    return float(task.error((values > 0).to(fresh.targets.dtype), fresh).mean())
