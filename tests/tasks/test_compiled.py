"""The wrapper around numba: says when it compiles, keeps the cache, covers every row once."""

import importlib.util
import logging
import threading

import numpy as np
import pytest
import torch
from numba.core.caching import CacheImpl

from algocapture.tasks.compiled import in_threads

SOURCE = """
from algocapture.tasks.compiled import compiled

@compiled
def successor(x):
    return x + 1
"""


def load(path, name):
    found = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_first_compilation_speaks_and_the_cache_is_silent(tmp_path, caplog):
    path = tmp_path / "kernel_for_test.py"
    path.write_text(SOURCE)
    with caplog.at_level(logging.INFO, logger="algocapture"):
        assert load(path, "kernel_for_test").successor(2) == 3
    assert [r.message for r in caplog.records] == ["compiling kernel_for_test (once; cached)"]
    caplog.clear()
    again = load(path, "kernel_for_test").successor
    with caplog.at_level(logging.INFO, logger="algocapture"):
        assert again(2) == 3
    assert sum(again.stats.cache_hits.values()) == 1
    assert not caplog.records


def test_without_a_place_for_the_cache_every_process_compiles(tmp_path, caplog, monkeypatch):
    """As on a read-only installation with a read-only home, where numba refuses to cache."""
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    path = tmp_path / "kernel_without_cache.py"
    path.write_text(SOURCE)
    with caplog.at_level(logging.INFO, logger="algocapture"):
        assert load(path, "kernel_without_cache").successor(2) == 3
    (message,) = [r.message for r in caplog.records]
    assert message.startswith("compiling kernel_without_cache (again in every process: ")
    assert "NUMBA_CACHE_DIR" in message
    assert not list(tmp_path.glob("**/*.nb?"))


@pytest.mark.parametrize("n", [1, 2, 7, 100])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_row_is_visited_once(n, threads):
    seen = np.zeros(n, dtype=int)
    names = set()

    def chunk(start, stop):
        seen[start:stop] += 1
        names.add(threading.get_ident())

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        in_threads(chunk, n)
    finally:
        torch.set_num_threads(before)
    assert (seen == 1).all()
    assert len(names) <= threads


def test_an_error_in_a_thread_is_raised():
    def chunk(start, stop):
        raise ArithmeticError("in a worker")

    with pytest.raises(ArithmeticError, match="in a worker"):
        in_threads(chunk, 4)
