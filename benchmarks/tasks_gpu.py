"""Instances on a GPU: made and labelled there, or prepared by background threads. With the bars.

    python -m benchmarks.tasks_gpu          # on a machine with a GPU; about 30 seconds
    python -m benchmarks.tasks_gpu cpu      # the same calls without one, to try the script

Each part runs by itself: a part that fails prints its traceback, and the last line counts them.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch

from algocapture.protocol.ahead import Ahead, Request, make
from algocapture.rng import Seed
from algocapture.tasks import (
    GrammarRecognition,
    Induction,
    MinCut,
    ShortestPath,
    Sorting,
    StringMatch,
    Task,
)
from algocapture.types import Batch, torch_generator
from benchmarks.timing import interleaved

TOKENS = 4_000_000  # per call, whatever the size
NODES = 1 << 18
CHECKED = 256  # instances whose labels are computed again on the CPU
BATCH = 1024
ROUNDS = 5

SEQUENCES = [(task, size) for task in (Induction(), Sorting(), StringMatch())
             for size in (50, 1_000, 10_000)]  # fmt: skip
PATHS = [(ShortestPath(), 64), (ShortestPath(), 256)]
# Task, size, instances per second asked for; MinCut's bar is that of two cores.
AHEAD = [(GrammarRecognition(), 50, 50_000), (MinCut(), 64, 30_000), (MinCut(), 256, 7_500)]


def main() -> None:
    device = torch.device((sys.argv[1:] or ["cuda"])[0])
    cores = len(os.sched_getaffinity(0))
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "no GPU"
    print(f"{name}, {cores} cores, torch {torch.__version__}", flush=True)
    parts = {f"{title(t)}, T={size}": partial(resident, t, size, device, 1e7, size, "token")
             for t, size in SEQUENCES}  # fmt: skip
    bars = {64: 90_000, 256: 11_000}
    parts |= {f"{title(t)}, T={size}": partial(resident, t, size, device, bars[size], 1, "instance")
              for t, size in PATHS}  # fmt: skip
    parts |= {f"{title(t)}, T={size}": partial(prepared, t, size, bar, device, cores)
              for t, size, bar in AHEAD}  # fmt: skip
    missed = [name for name, part in parts.items() if not held(name, part)]
    print(f"{len(parts) - len(missed)} of {len(parts)} parts hold; not: {', '.join(missed) or '-'}")


def title(task: Task) -> str:
    return type(task).__name__


def held(name: str, part: Callable[[], bool]) -> bool:
    """Whether a part ran and met its bar; what it raises is shown and the next one runs."""
    print(name, flush=True)
    try:
        return part()
    except Exception:
        traceback.print_exc()
        return False


def resident(
    task: Task, size: int, device: torch.device, bar: float, units: int, unit: str
) -> bool:
    """Sampled, solved and scored where the generator lives, without a synchronisation."""
    n = (TOKENS if units > 1 else NODES) // size
    draws = torch_generator(Seed(0).child(title(task), size), device)
    task.solve(task.sample(size, 2, draws).inputs)  # the first call may load kernels
    with no_host_copies(device):
        batch = task.sample(size, n, draws)
        solved = task.solve(batch.inputs)
        wrong = task.error(solved, batch).sum()
    places = {x.device.type for x in (batch.inputs, batch.targets, batch.mask, solved)}
    agrees = float(wrong) == 0 and labels_agree(task, batch)
    host = torch_generator(Seed(1))
    fewer = max(2, n // 32)
    seconds = interleaved(
        {
            "here": lambda: synchronised(device, lambda: task.sample(size, n, draws)),
            "on the CPU": lambda: task.sample(size, fewer, host),
        },
        ROUNDS,
    )
    rate = n * units / seconds["here"]
    ratio = rate * seconds["on the CPU"] / (fewer * units)
    stays = places == {device.type} and task.on_gpu(size)
    print(
        f"  {rate:.3g} {unit}s/s, {rate / bar:.1f} x the bar, {ratio:.1f} x one process on the CPU"
        f" ({torch.get_num_threads()} threads); labels agree: {agrees}; stays there: {stays}"
    )
    return agrees and stays and rate >= bar


def labels_agree(task: Task, batch: Batch) -> bool:
    """The CPU's solver on the first instances: another algorithm for ShortestPath."""
    some = batch[:CHECKED].to("cpu")
    answers = task.solve(some.inputs)
    return bool(torch.equal(answers[some.mask], some.targets[some.mask]))


@contextmanager
def no_host_copies(device: torch.device) -> Iterator[None]:
    """Raise at a synchronisation: every copy to the host is one."""
    if device.type != "cuda":
        yield
        return
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def synchronised(device: torch.device, function: Callable[[], object]) -> None:
    function()
    if device.type == "cuda":
        torch.cuda.synchronize()


def prepared(task: Task, size: int, bar: float, device: torch.device, cores: int) -> bool:
    """As the engine asks for batches of one seed, with a thread for each core, one torch thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # of a unit of work, by default
    ahead = Ahead(task, device, cores)
    try:
        begun = time.perf_counter()
        ahead.take(request(size, 0), partial(request, size))
        print(f"  the first batch, compilation included, after {time.perf_counter() - begun:.1f} s")
        rate, number = 0.0, 1
        for _ in range(ROUNDS):
            count, begun = 0, time.perf_counter()
            while time.perf_counter() - begun < 0.5:
                ahead.take(request(size, number), lambda k, at=number: request(size, at + k))
                count, number = count + 1, number + 1
            rate = max(rate, count * BATCH / (time.perf_counter() - begun))
        one = interleaved({"one": lambda: make(task, request(size, 0))}, 2)["one"]
        taken = ahead.take(request(size, number), partial(request, size))
    finally:
        ahead.drop()
        torch.set_num_threads(before)
    agrees = labels_agree(task, taken)
    print(
        f"  {rate:,.0f} instances/s, {rate / bar:.2f} x the bar, {rate * one / BATCH:.1f} x one"
        f" thread; labels agree: {agrees}; on {taken.inputs.device.type}"
    )
    return agrees and taken.inputs.device.type == device.type and rate >= bar


def request(size: int, number: int) -> Request:
    return Seed(0).child("train", number), size, BATCH


if __name__ == "__main__":
    main()
