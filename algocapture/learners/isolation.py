"""Modules of users may draw from torch's global generator (dropout, initialisation).

This is the only place where it is seeded: each member owns a state of it, which is put in
place while its module runs and stored again afterwards. Python's and numpy's global generators
are not covered.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from algocapture.rng import Seed


class GlobalGenerator:
    """One member's own state of torch's global generator, on the CPU and on its device."""

    def __init__(self, seed: Seed, device: torch.device) -> None:
        self.device = device
        outer = _read(device)
        # torch.manual_seed keeps a traceback for each of its calls, where CUDA has not begun.
        torch.default_generator.manual_seed(seed.integer())  # undone in the next lines
        if device.type == "cuda":
            torch.cuda.manual_seed_all(seed.integer())  # noqa: TID251 - undone likewise
        self.states = _read(device)
        _write(outer, device)

    @contextmanager
    def use(self, *, keep: bool = True) -> Iterator[None]:
        """Run a block on this state. With keep=False its draws leave no trace."""
        outer = _read(self.device)
        _write(self.states, self.device)
        try:
            yield
            if keep:
                self.states = _read(self.device)
        finally:
            _write(outer, self.device)

    def state(self) -> dict[str, np.ndarray]:
        return {name: state.numpy().copy() for name, state in self.states.items()}

    def load(self, state: dict[str, np.ndarray]) -> None:
        """A state that was stored on another kind of device keeps only its part for the CPU."""
        self.states |= {
            name: torch.from_numpy(array.copy())
            for name, array in state.items()
            if name in self.states
        }


def _read(device: torch.device) -> dict[str, Tensor]:
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def _write(states: dict[str, Tensor], device: torch.device) -> None:
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states["cuda"], device)
