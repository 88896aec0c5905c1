"""Small instances of every part; the conformance tests run over these tables.

A new part is tested by adding one line here.
"""

from __future__ import annotations

from dataclasses import dataclass

from algocapture.tasks import Induction, MinCut, ShortestPath, Sorting, StringMatch, Task


@dataclass(frozen=True)
class TaskCase:
    task: Task
    sizes: tuple[int, ...]  # small ones, the smallest first
    n: int = 64  # even
    balanced: bool = False  # exactly half of an even batch is of class 1
    on_gpu: bool = True  # sampled and solved there without a host copy

    def __str__(self) -> str:
        return repr(self.task)


TASKS = [
    TaskCase(Induction(), (4, 5, 50)),
    TaskCase(Induction(vocab=2), (4, 11)),
    TaskCase(Sorting(), (1, 2, 50)),
    TaskCase(Sorting(vocab=40_000), (1, 30)),
    TaskCase(ShortestPath(), (2, 3, 60)),
    TaskCase(ShortestPath(torus=True, coordinates="radius", dimension=3), (2, 40)),
    TaskCase(ShortestPath(connected=True, boundary_corrected=True), (2, 30), on_gpu=False),
    TaskCase(MinCut(), (2, 3, 60), on_gpu=False),
    TaskCase(MinCut(coordinates="radius", degree_law="log"), (2, 40), on_gpu=False),
    TaskCase(StringMatch(), (8, 9, 50), balanced=True),
    TaskCase(StringMatch(alphabet=4, near_misses=3), (18, 19, 60), balanced=True),
    TaskCase(
        StringMatch(alphabet=3, pattern_length=2, near_misses=0, pattern=(1, 1)),
        (2, 9),
        balanced=True,
    ),
]
