"""Memory: a limit that is held, and freed blocks that do not fault in again."""

import resource
import subprocess
import sys

import pytest
import torch

from algocapture.kernels import InfiniteTransformer

LARGE = """
import resource, torch, algocapture.kernels  # after whose imports the top of the heap is free
from algocapture.kernels import InfiniteTransformer
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
x = torch.randn(300, 64, 8, generator=torch.Generator().manual_seed(0))
kernel = InfiniteTransformer(1, "relu", readout="last")
g = torch.Generator().manual_seed(0)
kernel.estimate(x, samples=32, generator=g, kinds=("nngp", "ntk"), memory=2**27)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
FAULTS = """
import resource, torch, algocapture.kernels  # after whose imports the top of the heap is free
from algocapture.allocator import keep_freed_memory
if {keep}:
    keep_freed_memory()
x = torch.ones(2**18)
faults = []
for repeat in range(20):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    y = (x + x) * (x * x)
    del y
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(sorted(faults)[10])
"""


def printed(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.slow
def test_a_gram_of_last_tokens_makes_no_covariance_of_all_tokens():
    """19,200 tokens: their covariance alone would take 1.5 GB."""
    assert printed(LARGE) < 300_000  # kB; the limit is 128 MiB


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_freed_memory_stays_in_the_process():
    assert printed(FAULTS.format(keep=True)) < 16 < printed(FAULTS.format(keep=False))


def test_what_cannot_fit_is_refused_before_it_is_tried():
    x = torch.randn(40, 64, 8, generator=torch.Generator().manual_seed(0))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match="raise memory, or compute the Gram in tiles"):
        InfiniteTransformer(2, "relu").estimate(
            x, samples=8, generator=torch.Generator(), memory=2**24
        )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**14
