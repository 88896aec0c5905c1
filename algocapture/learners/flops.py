"""FLOPs of a module that does not say what it costs: counted once for each length."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode


def counted_flops(module: nn.Module, inputs: Tensor) -> int:
    """FLOPs of the matrix products of one forward pass."""
    training = module.training
    module.eval()
    try:
        with torch.no_grad(), _plain_kernels(), FlopCounterMode(display=False) as counter:
            module(inputs)
    finally:
        module.train(training)
    return int(counter.get_total_flops())


@contextmanager
def _plain_kernels() -> Iterator[None]:
    """Fused attention (all but MATH) and fused recurrences hide their products from the counter."""
    # mkldnn.flags would also set a TF32 switch that warns where there is no Intel GPU.
    enabled = torch.backends.mkldnn.set_flags(_enabled=False)[0]
    try:
        with sdpa_kernel(SDPBackend.MATH), torch.backends.cudnn.flags(enabled=False):
            yield
    finally:
        torch.backends.mkldnn.set_flags(_enabled=enabled)
