"""Freed memory that stays in the process.

glibc hands blocks above a threshold back to the system as they are freed, and every page of the
next one faults again: an elementwise product of 1 MB took 14 times as long, a run of the engine at
T = 40 1.07 times. Freeing one large block, never touched, raises the threshold to its size for good
(mallopt(3), M_MMAP_THRESHOLD; at most 32 MB, twice that for the top of the heap). Other allocators
do nothing of the kind.
"""

from __future__ import annotations

from functools import cache

import torch

LARGEST = 31 * 2**20  # bytes: the most that glibc's threshold follows, with room for a header


@cache
def keep_freed_memory() -> None:
    """Once in a process, for CPU workspaces."""
    torch.empty(LARGEST, dtype=torch.uint8)
