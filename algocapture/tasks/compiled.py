"""Kernels compiled by numba: cached on disk, free of the interpreter lock, run in threads."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import torch

from algocapture.elsewhere import elsewhere

with elsewhere():  # where no settings of numba are that others wrote
    import numba
    from numba.core import event

F = TypeVar("F", bound=Callable[..., Any])
CHUNKS_PER_THREAD = 8  # instances differ in cost: small chunks keep all threads busy to the end

KEPT = "once; cached"
AGAIN = "again in every process: no folder for its cache is writable; set NUMBA_CACHE_DIR"

_ours: dict[str, str] = {}  # module -> how long its compiled code lasts
_said: set[str] = set()


class _Announce(event.Listener):
    """Numba triggers `numba:compile` only when the disk cache did not have the kernel."""

    def on_start(self, event: event.Event) -> None:
        module = event.data["dispatcher"].py_func.__module__
        if module in _ours and module not in _said:
            _said.add(module)
            # A warning, since without a word on stderr the first call looks like a hang.
            logging.getLogger("algocapture").warning("compiling %s (%s)", module, _ours[module])

    def on_end(self, event: event.Event) -> None:
        pass


event.register("numba:compile", _Announce())


def compiled(function: F) -> F:
    """Decorator: `numba.njit(cache=True, nogil=True)`; the first compilation says so.

    The cache watches the kernel's own file only: keep a kernel and what it calls in one file.
    Where it has no place (an installation and a home that are read-only), there is none.
    """
    module = function.__module__
    kernel: Any
    try:
        kernel, lasts = numba.njit(cache=True, nogil=True)(function), KEPT
    except RuntimeError:
        kernel, lasts = numba.njit(nogil=True)(function), AGAIN
    _ours[module] = lasts
    return kernel


def in_threads(chunk: Callable[[int, int], None], n: int) -> None:
    """Call `chunk(start, stop)` over a partition of range(n), in torch.get_num_threads() threads.

    The caller's chunks write to disjoint rows and draw per row, so that neither the number of
    threads nor the partition shows in the result.
    """
    threads = min(torch.get_num_threads(), n)
    if threads <= 1:
        chunk(0, n)
        return
    parts = min(n, threads * CHUNKS_PER_THREAD)
    bounds = [n * i // parts for i in range(parts + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(chunk, bounds[:-1], bounds[1:]))
