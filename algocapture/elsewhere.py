"""Imports out of reach of the folder that a person stands in.

matplotlib reads `matplotlibrc` and numba `.numba_config.yaml` from the current folder when they
are imported; the first evaluates a part of it, the second may be told to load compiled code from
there. Who looks at results of others may well stand in their folder, and results are data.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def elsewhere() -> Iterator[None]:
    """The file system's root is the current folder meanwhile."""
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    os.chdir("/")
    try:
        yield
    finally:
        os.fchdir(here)
        os.close(here)
