"""What a computation in torch costs, counted as it runs: the oracle beside the analytic formulas.

Works on tensors without data too (`device="meta"`), so that sizes beyond any memory are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter
from torch.utils.flop_counter import flop_registry

CUBIC = {
    "_linalg_eigh",
    "linalg_cholesky_ex",
    "linalg_solve_triangular",
    "cholesky_solve",
}
FREE = {"empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided"}


@dataclass(frozen=True)
class Cost:
    """Four counts of different kinds, never added up in silence."""

    products: int  # FLOPs of matrix products: 2 m k n each
    entries: int  # entries written by all other operations, softmax and normal draws included
    cubes: int  # n^3 for each factorization or triangular system of size n
    peak: int  # bytes of the tensors made inside, when most were alive


class Counter(TorchDispatchMode):
    """Counts every operation run inside it; workspace within a single operation is not seen."""

    def __init__(self) -> None:
        super().__init__()
        self.products = self.entries = self.cubes = self.peak = 0
        self._alive: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        given = {x.untyped_storage()._cdata for x in tree_iter((args, kwargs)) if _is_dense(x)}
        made = [x for x in tree_iter(out) if _is_dense(x)]
        fresh = [x for x in made if x.untyped_storage()._cdata not in given]  # no views
        packet = func._overloadpacket
        if packet in flop_registry:
            self.products += flop_registry[packet](*args, **kwargs, out_val=out)
        elif packet.__name__ in CUBIC:
            n = args[0].shape[-1]
            self.cubes += args[0].numel() // max(n, 1) ** 2 * n**3
        elif packet.__name__ not in FREE:
            written = made if func._schema.is_mutable else fresh
            self.entries += sum(x.numel() for x in written)
        self._watch(fresh)
        return out

    def _watch(self, fresh: list[Tensor]) -> None:
        for tensor in fresh:
            storage = tensor.untyped_storage()
            self._alive[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        self._alive = {k: held for k, held in self._alive.items() if not held[0].expired()}
        self.peak = max(self.peak, sum(size for _, size in self._alive.values()))

    @property
    def cost(self) -> Cost:
        return Cost(self.products, self.entries, self.cubes, self.peak)


def counted(call: Callable[[], object], fused: bool = False) -> Cost:
    """What `call()` costs. `fused` attention needs less memory and hides its products."""
    kernels = list(SDPBackend.__members__.values()) if fused else [SDPBackend.MATH]
    with torch.no_grad(), sdpa_kernel(kernels), Counter() as counter:
        call()
    return counter.cost


def _is_dense(x: object) -> bool:
    return isinstance(x, Tensor) and x.layout == torch.strided
