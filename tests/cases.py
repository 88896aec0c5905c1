"""Small instances of every part; the conformance tests run over these tables.

A new part is tested by adding one line here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from algocapture.models import ModelConfig, SimplifiedTransformer, Transformer
from algocapture.tasks import (
    GrammarRecognition,
    Induction,
    MinCut,
    ShortestPath,
    Sorting,
    StringMatch,
    Task,
)
from algocapture.types import TaskSpec


@dataclass(frozen=True)
class TaskCase:
    task: Task
    sizes: tuple[int, ...]  # small ones, the smallest first
    n: int = 64  # even
    balanced: bool = False  # exactly half of an even batch is of class 1
    on_gpu: bool = True  # sampled and solved there without a host copy
    varied: bool = True  # so many instances at 60 that a large batch has no two alike

    def __str__(self) -> str:
        return repr(self.task)


TASKS = [
    TaskCase(Induction(), (4, 5, 50)),
    TaskCase(Induction(vocab=2), (4, 11), varied=False),  # the trigger and its place say all
    TaskCase(Sorting(), (1, 2, 50)),
    TaskCase(Sorting(vocab=40_000), (1, 30)),
    TaskCase(GrammarRecognition(), (3, 4, 50), balanced=True, on_gpu=False),
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


@dataclass(frozen=True)
class ModelCase:
    model: ModelConfig
    spec: TaskSpec
    shape: tuple[int, ...]  # of the outputs for 3 instances of length 9
    sees: str = "all"  # what a position may depend on: "past" or "all"

    def __str__(self) -> str:
        return f"{self.model!r}-{self.spec.inputs}"


TOKENS = TaskSpec(inputs="tokens", output="class", vocab=11, classes=7, readout="last")
POINTS = TaskSpec(inputs="vectors", output="value", features=3, readout="mean", marks=(0, -1))
_DECODER = Transformer(depth=2, width=16, heads=2)
_ENCODER = Transformer(depth=2, width=12, heads=3, causal=False, position="marks")
_PAPER = SimplifiedTransformer(depth=2, width=6, heads=3, key_width=4, bias_var=0.3)
MODELS = [
    ModelCase(_DECODER, TOKENS, (3, 7)),
    ModelCase(replace(_DECODER, mlp=24, readout="every"), TOKENS, (3, 9, 7), "past"),
    ModelCase(Transformer(depth=1, width=8, heads=1, rope_base=500_000.0), TOKENS, (3, 7)),
    ModelCase(replace(_DECODER, depth=3, causal=False, readout="mean"), TOKENS, (3, 7)),
    ModelCase(replace(_DECODER, output="value"), TOKENS, (3,)),
    ModelCase(_ENCODER, POINTS, (3,)),
    ModelCase(replace(_ENCODER, causal=True, readout="last"), POINTS, (3,)),
    ModelCase(replace(_ENCODER, position="none", classes=5, readout="last"), POINTS, (3, 5)),
    ModelCase(replace(_ENCODER, causal=True, readout="every"), POINTS, (3, 9), "past"),
    ModelCase(_PAPER, POINTS, (3,)),
    ModelCase(replace(_PAPER, outputs=5, readout="tokens"), POINTS, (3, 9, 5)),
    ModelCase(replace(_PAPER, depth=1, output_projection=True, readout="last"), TOKENS, (3, 7)),
    ModelCase(replace(_PAPER, parameterisation="standard", layernorm_affine=True), TOKENS, (3, 7)),
    ModelCase(replace(_PAPER, parameterisation="mean-field", activation="relu"), POINTS, (3,)),
    ModelCase(replace(_PAPER, causal=True, readout="tokens"), TOKENS, (3, 9, 7), "past"),
    ModelCase(replace(_PAPER, activation="erf", score_scale=2.0, outputs=1), TOKENS, (3, 1)),
    ModelCase(replace(_PAPER, activation="identity", causal=True), POINTS, (3,)),
]
