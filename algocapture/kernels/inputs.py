"""Inputs of one or several lengths, padded on the right and stacked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from algocapture.kernels.checks import check_finite

Inputs = Tensor | Sequence[Tensor]


def as_list(name: str, x: Inputs) -> list[Tensor]:
    """A list of (T_i, d) tensors from (P, T, d), from a list, or from (P, d) rows as T = 1."""
    if isinstance(x, Tensor):
        check_finite(name, x)
        if x.ndim == 2:
            x = x[:, None, :]
        if x.ndim != 3 or 0 in x.shape:
            raise ValueError(f"{name} has shape {tuple(x.shape)}, expected (P, T, d), none of it 0")
        return list(x.unbind(0))
    items = list(x)
    if not items:
        raise ValueError(f"{name} is an empty list: give at least one input of shape (T, d)")
    for i, item in enumerate(items):
        check_finite(f"{name}[{i}]", item)
        if item.ndim != 2 or 0 in item.shape or item.shape[1] != items[0].shape[1]:
            raise ValueError(
                f"{name}[{i}] has shape {tuple(item.shape)}, expected (T_i, d) with T_i >= 1 "
                "and the same d for all"
            )
    return items


def unpad(x: Float[Tensor, "P T d"], mask: Bool[Tensor, "P T"]) -> list[Tensor]:
    """Padded inputs as a list of their real tokens: the way to give padding to a kernel."""
    if mask.shape != x.shape[:2] or not mask.any(1).all():
        raise ValueError(
            f"mask has shape {tuple(mask.shape)}, expected {tuple(x.shape[:2])} with a real token "
            "in every input"
        )
    return [item[kept] for item, kept in zip(x, mask, strict=True)]


@dataclass(frozen=True)
class Stack:
    """P inputs as rows of a root of the layer-0 covariance: tokens / sqrt(d), 0 where padded."""

    root: Float[Tensor, "G P T d"]
    lengths: Int[Tensor, "G P"]

    @classmethod
    def of(cls, items: Sequence[Tensor], dtype: torch.dtype) -> Stack:
        for item in items:
            if item.shape[1] != items[0].shape[1] or item.device != items[0].device:
                raise ValueError(
                    f"x2 has d = {item.shape[1]} on {item.device}, "
                    f"x1 has d = {items[0].shape[1]} on {items[0].device}"
                )
        padded = torch.nn.utils.rnn.pad_sequence([item.to(dtype) for item in items], True)
        lengths = torch.tensor([len(item) for item in items], device=padded.device)
        return cls(padded[None] / padded.shape[-1] ** 0.5, lengths[None])

    def pairs(self, index: Int[Tensor, "G 2"]) -> Stack:
        """One group for each pair of inputs."""
        return Stack(self.root[0][index], self.lengths[0][index])

    @property
    def valid(self) -> Bool[Tensor, "G P T"]:
        tokens = torch.arange(self.root.shape[2], device=self.root.device)
        return tokens < self.lengths[..., None]

    def allowed(self, causal: bool) -> Bool[Tensor, "G P T T"] | None:
        """The keys that each query sees. A padded query sees real tokens, so no row is empty."""
        tokens = self.root.shape[2]
        full = bool((self.lengths == tokens).all())
        if full and not causal:
            return None
        keys = self.valid[..., None, :].expand(*self.lengths.shape, tokens, tokens)
        past = torch.ones(tokens, tokens, dtype=torch.bool, device=keys.device).tril()
        return keys & past if causal else keys
