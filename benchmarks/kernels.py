"""Infinite-width kernels: time to an error, rates and exponents, beside neural-tangents.

    python -m benchmarks.kernels [fcn] [attention] [scaling] [--device cuda]

The rate of the pair samplers: benchmarks/kernels_rate.py. Errors against draws and T: the study
`algocapture run kernel_errors`.

neural-tangents lives in an environment of its own (see make_neural_tangents_fixture.py); give its
interpreter in NEURAL_TANGENTS_PYTHON, else its lines are skipped.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from algocapture.allocator import keep_freed_memory
from algocapture.kernels import Estimate, InfiniteFullyConnected, InfiniteTransformer
from algocapture.kernels.samplers import SharedRoot
from benchmarks.kernels_neural_tangents import SETTINGS
from benchmarks.timing import interleaved, measured

PEER = Path(__file__).with_name("kernels_neural_tangents.py")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", default=[], help=", ".join(PARTS))
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    print(f"device {options.device}, threads {torch.get_num_threads()}")
    for name in options.parts or PARTS:
        print(f"\n{name}: {(PARTS[name].__doc__ or '').splitlines()[0]}")
        PARTS[name](torch.device(options.device))


def peer(part: str, arrays: dict[str, np.ndarray]) -> dict | None:
    """What neural-tangents measures on the same inputs, in its own process."""
    python = os.environ.get("NEURAL_TANGENTS_PYTHON")
    if not python:
        print("  neural-tangents: skipped, NEURAL_TANGENTS_PYTHON is not set")
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "inputs.npz"
        np.savez(path, **arrays)
        done = subprocess.run(
            [python, str(PEER), part, str(path)], capture_output=True, text=True, check=True
        )
    return json.loads(done.stdout.splitlines()[-1])


def fcn(device: torch.device) -> None:
    """512 x 512 Gram, dimension 256, depth 4 (three ReLUs), NNGP and NTK, float32."""
    x = torch.randn(512, 256, generator=torch.Generator().manual_seed(0)).to(device)
    y = torch.randn(512, 256, generator=torch.Generator().manual_seed(1)).to(device)
    kernel = InfiniteFullyConnected(4, "relu", 1.7, 0.2)

    every = torch.get_num_threads()

    def both(threads: int) -> None:
        torch.set_num_threads(threads)
        synchronised(kernel.kernels(x, y)["ntk"])

    # On a busy machine a second thread waits for its core at the end of every operation.
    calls = {str(n): lambda n=n: both(n) for n in sorted({1, every})}
    wall, cpu = (
        {n: min(taken) for n, taken in measured(calls, 30, clock).items()}
        for clock in (time.perf_counter, time.process_time)
    )
    torch.set_num_threads(every)
    for threads, taken in wall.items():
        print(
            f"  algocapture {taken * 1e3:.2f} ms, {cpu[threads] * 1e3:.2f} of CPU, "
            f"threads {threads}"
        )
    theirs = peer("fcn", {"x": x.cpu().numpy(), "y": y.cpu().numpy()})
    if theirs:
        print(
            f"  neural-tangents (jitted) {theirs['seconds'] * 1e3:.2f} ms, "
            f"{theirs['cpu'] * 1e3:.2f} of CPU: "
            f"ratio {theirs['seconds'] / min(wall.values()):.2f}, "
            f"of processor time {theirs['cpu'] / min(cpu.values()):.2f}"
        )


def attention(device: torch.device) -> None:
    """8 x 8 Gram, T = 32, attention + LayerNorm + ReLU + linear: time to an error of 1%."""
    x = torch.randn(8, 32, 64, generator=torch.Generator().manual_seed(0)).to(device)
    generator = torch.Generator(device).manual_seed(1)
    kernel = InfiniteTransformer(1, "relu", 1.7, 0.2, output_projection=True)
    reference = kernel.estimate(
        x, samples=20_000, generator=generator, kinds=("nngp", "ntk"), dtype="float32"
    )
    arrays = {"x": x.cpu().numpy()} | {k: e.value.cpu().numpy() for k, e in reference.items()}
    ours = {kind: time_to_error(kernel, x, generator, kind, e) for kind, e in reference.items()}
    for number, setting in enumerate(SETTINGS):
        theirs = peer(str(number), arrays)
        if theirs is None:
            return
        kind, more = setting[0], max(1.0, (theirs["error"] / 0.01) ** 2)
        wall, cpu = ours[kind]
        print(
            f"  neural-tangents, {setting}: {theirs['seconds']:.1f} s at {theirs['error']:.1%}, so "
            f"at least {theirs['seconds'] * more:.1f} s at 1%: ratio "
            f"{theirs['seconds'] * more / wall:.0f}, of processor time "
            f"{theirs['cpu'] * more / cpu:.0f}",
            flush=True,
        )


def time_to_error(
    kernel: InfiniteTransformer,
    x: torch.Tensor,
    generator: torch.Generator,
    kind: str,
    reference: Estimate,
) -> tuple[float, float]:
    """Wall and processor seconds to an error of 1%."""
    exact = reference.value

    def run(samples: int) -> torch.Tensor:
        out = kernel.estimate(x, samples=samples, generator=generator, kinds=[kind])
        return synchronised(out[kind].value)

    pilot = rms_error([run(256) for _ in range(4)], exact)
    samples = math.ceil(256 * (pilot / 0.01) ** 2)
    error = rms_error([run(samples) for _ in range(4)], exact)
    clocks = time.perf_counter, time.process_time
    wall, cpu = (min(measured({"x": lambda: run(samples)}, 15, c)["x"]) for c in clocks)
    print(
        f"  {kind}: {samples} draws, error {error:.2%}, {wall * 1e3:.0f} ms, of processor time "
        f"{cpu * 1e3:.0f} ms"
    )
    return wall, cpu


def scaling(device: torch.device) -> None:
    """Exponents: score draws in P (block 1 at fixed d, then deeper), a pair's NNGP in T."""
    keep_freed_memory()  # as every estimate does
    generator = torch.Generator(device).manual_seed(1)
    for name, rank, counts, draws in (
        ("block 1, d = 16", lambda inputs: 16, (32, 64, 128, 256), 32),
        ("deeper, full rank", lambda inputs: 16 * inputs, (8, 16, 32, 64), 2),
    ):
        times = []
        for inputs in counts:
            root = torch.randn(1, inputs, 16, rank(inputs), generator=generator, device=device)
            sampler = SharedRoot(root)
            call = {"x": lambda s=sampler, n=draws: synchronised(s.draw(n, generator))}
            times.append(interleaved(call)["x"])
        print(
            f"  score draws, {name}: exponent {slope(counts, times):.2f} in P from {counts[0]} to "
            f"{counts[-1]} ({', '.join(f'{t * 1e3:.2f}' for t in times)} ms)"
        )
    sizes = (256, 512, 1024)
    times = [pair_seconds(device, tokens) for tokens in sizes]
    print(f"  time of a pair: {slope(sizes, times):.2f} in T from {sizes[0]} to {sizes[-1]}")


def pair_seconds(device: torch.device, tokens: int) -> float:
    seed = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 1, tokens, 2 * tokens, generator=seed).to(device)
    kernel, generator = InfiniteTransformer(1, "relu"), torch.Generator(device).manual_seed(1)

    def pair() -> None:
        out = kernel.estimate(x, y, samples=8, generator=generator, sampler="pair")
        synchronised(out["nngp"].value)

    return interleaved({"pair": pair}, rounds=3)["pair"]


def rms_error(values: list[torch.Tensor], exact: torch.Tensor) -> float:
    error = torch.stack([(v - exact).square().mean() for v in values]).mean()
    return float((error / exact.square().mean()).sqrt())


def slope(x: tuple[int, ...], y: list[float]) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def synchronised(value: torch.Tensor) -> torch.Tensor:
    if value.is_cuda:
        torch.cuda.synchronize()
    return value


PARTS: dict[str, Callable[[torch.device], None]] = {
    "fcn": fcn,
    "attention": attention,
    "scaling": scaling,
}

if __name__ == "__main__":
    main()
