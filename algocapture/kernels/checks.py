"""Checks of arguments that the kernels share: each error names the argument and shows its value."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def check_count(name: str, value: object, least: int = 1) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} = {value!r}: expected an integer >= {least}")


def check_variance(name: str, value: float) -> None:
    if not (isinstance(value, int | float) and math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} = {value!r}: expected a finite number >= 0")


def check_choice(name: str, value: object, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} = {value!r}: expected one of {', '.join(map(repr, allowed))}")


def check_finite(name: str, x: Tensor) -> Tensor:
    """A floating tensor without NaN or infinity."""
    if not isinstance(x, Tensor) or not x.is_floating_point():
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"{name} is {kind}, expected a floating torch tensor")
    if x.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"{name} has dtype {x.dtype}: kernels compute in float32 or float64")
    if not torch.isfinite(x.sum()) and not torch.isfinite(x).all():  # the sum is 20 times quicker
        raise ValueError(f"{name} holds NaN or infinite values: remove or replace them")
    return x
