"""Batches prepared ahead of training, in background threads.

Tasks whose samplers run on the CPU (grammar, min cut, large graphs) would leave a GPU waiting.
Their kernels release the interpreter lock, and a batch is a function of its seed alone, so the
next ones can be made while the present one is trained on. A batch made but not used, because its
stage was passed, is dropped uncharged.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import torch

from algocapture.rng import Seed
from algocapture.tasks.base import Task
from algocapture.types import Batch, torch_generator

Request = tuple[Seed, int, int]  # the batch's seed, its size, the number of its instances


class Ahead:
    """A source of batches for some members; it says what each will ask for next.

    So many batches of each are made ahead that all workers are busy and one is ready.
    """

    def __init__(self, task: Task, device: torch.device, workers: int, members: int = 1) -> None:
        self.task, self.device = task, device
        self.depth = 1 + -(-workers // members)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="algocapture-ahead")
        self._made: dict[Request, Future[Batch]] = {}

    def take(self, request: Request, following: Callable[[int], Request]) -> Batch:
        """The batch of a request; `following(k)` is the k-th request after it."""
        future = self._made.pop(request, None) or self._submit(request)
        fresh: list[Request] = []
        for k in range(self.depth, 0, -1):  # mostly only the farthest is new
            if (later := following(k)) in self._made:
                break
            fresh.append(later)
        for later in reversed(fresh):
            self._made[later] = self._submit(later)
        return future.result().to(self.device)

    def drop(self) -> None:
        """Forget what was made for a stage that is over."""
        for future in self._made.values():
            future.cancel()
        self._made.clear()

    def _submit(self, request: Request) -> Future[Batch]:
        return self._pool.submit(make, self.task, request)


def make(task: Task, request: Request) -> Batch:
    """On the CPU, whatever the device of training."""
    seed, size, n = request
    return task.sample(size, n, torch_generator(seed))
