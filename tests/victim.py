"""The run that faults are injected into: the smallest real one with several stages."""

from __future__ import annotations

from pathlib import Path

from algocapture.experiment import Experiment, drive
from algocapture.launch import Inline
from algocapture.learners import SGD
from algocapture.models import Transformer
from algocapture.protocol import Incremental, Limits
from algocapture.stats import SequentialTest
from algocapture.tasks import Sorting

EXPERIMENT = Experiment(
    task=Sorting(vocab=3),
    learner=SGD(model=Transformer(depth=1, width=16, heads=1), lr=5e-3, warmup=5),
    protocol=Incremental(
        t0=3,
        delta=0.3,
        growth=1.3,
        batch=16,
        grid=2,
        test=SequentialTest(chunk=64, looks=50, maximum=512),
        probes=(2.0,),
        probe_samples=16,
        baseline_samples=16,
    ),
    limits=Limits(largest=6, samples=10_000),
    seeds=2,
)


def real(folder: Path) -> None:
    """About a second: two seeds, four stages each, some forty looks."""
    assert drive(EXPERIMENT, folder, Inline())
