"""Memory instead of a disk where there is some: an fsync costs 10 ms on a disk."""

import os
import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def tmp_path():
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        yield Path(folder)
