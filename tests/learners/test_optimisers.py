"""Our optimisers take the steps of torch.optim's, in float64."""

import pytest
import torch
from torch import nn

from algocapture.learners.optimisers import AdamW, Momentum

SHAPES = {"matrix": (4, 3), "unused": (2, 2), "gain": (5,), "scalar": ()}


def parameters():
    draws = torch.Generator().manual_seed(0)
    return {
        name: nn.Parameter(torch.randn(shape, generator=draws, dtype=torch.float64))
        for name, shape in SHAPES.items()
    }


def torch_groups(held, weight_decay):
    return [
        {"params": [p for p in held.values() if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in held.values() if p.ndim < 2], "weight_decay": 0.0},
    ]


@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
@pytest.mark.parametrize("kind", ["adamw", "sgd", "momentum"])
def test_steps_equal_those_of_torch(kind, weight_decay):
    ours, theirs = parameters(), parameters()
    groups = torch_groups(theirs, weight_decay)
    if kind == "adamw":
        optimiser = AdamW(ours, weight_decay, betas=(0.8, 0.97))
        reference = torch.optim.AdamW(groups, lr=1.0, betas=(0.8, 0.97))
    else:
        momentum = 0.9 if kind == "momentum" else 0.0
        optimiser = Momentum(ours, weight_decay, momentum)
        reference = torch.optim.SGD(groups, lr=1.0, momentum=momentum)
    draws = torch.Generator().manual_seed(1)
    for number in range(6):
        lr = 0.1 / (1 + number)
        for name in ("matrix", "gain", "scalar"):
            gradient = torch.randn(SHAPES[name], generator=draws, dtype=torch.float64)
            ours[name].grad, theirs[name].grad = gradient.clone(), gradient.clone()
        for group in reference.param_groups:
            group["lr"] = lr
        reference.step()
        optimiser.step(lr, number)
        for name in SHAPES:
            torch.testing.assert_close(ours[name], theirs[name], rtol=1e-12, atol=1e-12)
    assert torch.equal(ours["unused"], parameters()["unused"])
