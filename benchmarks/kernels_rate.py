"""The pair samplers' rate as a share of a matrix product's, in the same run.

    python -m benchmarks.kernels_rate [--device cuda] [--tokens 256 512 1024]

NNGP of one pair at full rank (d = 2T, so that no root is of low rank), FLOPs of the matrix
products alone, counted below; softmax, normals and sums are what keeps a share below 1. On a GPU
the pieces of a draw are timed too. A failing part prints its traceback and the next one runs.
"""

from __future__ import annotations

import argparse
import time
import traceback
from collections.abc import Callable
from itertools import pairwise

import torch

from algocapture.kernels import InfiniteTransformer
from algocapture.kernels.attention import Layer, attend
from algocapture.kernels.chain import State
from algocapture.kernels.inputs import Stack
from algocapture.kernels.monte_carlo import precision
from algocapture.kernels.samplers import SharedRoot
from benchmarks.timing import interleaved

SAMPLERS = ("pair", "conditional")
# A1 Sigma', its product with A2^T, and two variances: 8 T^3. Scores of the joint root: F U (2T, 2T,
# 2T) and two products (T, 2T, T); of the conditional sampler: six products (T, T, T).
CUBES = {"pair": 16 + 8 + 8, "conditional": 12 + 8}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tokens", type=int, nargs="*")
    options = parser.parse_args()
    device = torch.device(options.device)
    cuda = device.type == "cuda"
    start = time.perf_counter()
    name = torch.cuda.get_device_name(device) if cuda else f"{torch.get_num_threads()} threads"
    print(f"torch {torch.__version__}, {name}", flush=True)
    for tokens in options.tokens or ((256, 512, 1024) if cuda else (256,)):
        for dtype in ("float32", "tf32") if cuda else ("float32",):
            attempt(lambda t=tokens, d=dtype: rate(device, t, d))
            if cuda:
                attempt(lambda t=tokens, d=dtype: pieces(device, t, d))
    print(f"{time.perf_counter() - start:.0f} s in all")


def attempt(part: Callable[[], None]) -> None:
    try:
        part()
    except Exception:
        traceback.print_exc()


def pair(device: torch.device, tokens: int) -> torch.Tensor:
    seed = torch.Generator().manual_seed(0)
    return torch.randn(2, 1, tokens, 2 * tokens, generator=seed).to(device)


def rate(device: torch.device, tokens: int, dtype: str) -> None:
    x, y = pair(device, tokens)
    generator = torch.Generator(device).manual_seed(1)
    kernel, cuda = InfiniteTransformer(1, "relu"), device.type == "cuda"
    work = (8e13 if dtype == "tf32" else 1.6e13) if cuda else 1e10  # FLOPs of one measurement
    draws = max(64, int(work / (32 * tokens**3)) // 512 * 512)
    square = torch.randn(*[8192 if cuda else 2048] * 2, generator=generator, device=device)

    def estimate(sampler: str) -> None:
        out = kernel.estimate(
            x, y, samples=draws, generator=generator, sampler=sampler, dtype=dtype, memory=2**33
        )
        float(out["nngp"].value.sum())  # waits for the device

    def product() -> None:
        with precision(dtype):
            float((square @ square)[0, 0])

    calls: dict[str, Callable[[], None]] = {"product": product}
    calls |= {name: lambda n=name: estimate(n) for name in SAMPLERS}
    seconds = interleaved(calls, rounds=5)
    best = 2 * len(square) ** 3 / seconds["product"]
    for name in SAMPLERS:
        reached = CUBES[name] * tokens**3 * draws / seconds[name]
        print(
            f"T={tokens} {dtype} {name}: {reached / 1e12:.3g} of {best / 1e12:.3g} TFLOP/s = "
            f"{reached / best:.0%}; {seconds[name] / draws * 1e6:.3g} us a draw",
            flush=True,
        )


def pieces(device: torch.device, tokens: int, dtype: str) -> None:
    """Microseconds a draw of each step of the joint root, on a GPU."""
    stack = Stack.of([x[0] for x in pair(device, tokens)], torch.float32)
    state = State.first(Stack(stack.root, stack.lengths), False)
    n = max(16, 2**25 // tokens**2 // 16 * 16)
    generator = torch.Generator(device).manual_seed(1)
    rank = state.root.shape[-1]
    one, two = slice(0, 1), slice(1, 2)
    nngp = state.nngp[:, one, :, two]
    plain = Layer(nngp, None, (nngp, None), False, False)
    own = Layer(nngp, None, (nngp, None), False, False, (state.own(one), state.own(two)))
    sampler = SharedRoot(state.root)
    with precision(dtype):
        scores = sampler.draw(n, generator)
        a = attend(scores, None, 1.0)
        both = a[:, :, one], a[:, :, two]
        steps: dict[str, Callable[[], object]] = {
            "normals": lambda: torch.randn(rank, n * rank, generator=generator, device=device),
            "scores with normals": lambda: sampler.draw(n, generator),
            "softmax": lambda: attend(scores, None, 1.0),
            "A1 Sigma' A2^T": lambda: plain.moments(*both, 1.0),
            "the same with variances": lambda: own.moments(*both, 1.0),
        }
        parts = [f"{name} {microseconds(step) / n:.3g}" for name, step in steps.items()]
    print(f"  us a draw, {n} at once: " + ", ".join(parts), flush=True)


def microseconds(step: Callable[[], object], repeats: int = 5) -> float:
    step()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
    marks[0].record()
    for mark in marks[1:]:
        step()
        mark.record()
    torch.cuda.synchronize()
    return 1e3 * min(a.elapsed_time(b) for a, b in pairwise(marks))


if __name__ == "__main__":
    main()
