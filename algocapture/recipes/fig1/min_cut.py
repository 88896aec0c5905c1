"""Panel (f): minimum cuts from T0 = 10 over the whole interval, 4 and 40 layers, three seeds.

The paper's: width 128, batch 1024, a causal decoder. Ours: read at the last token (the target),
mean degree 6, delta 20%, positions that only mark source and target, 4 heads, a classification
head over cut values, learning rate, looks.
"""

from __future__ import annotations

from algocapture.experiment import Experiment
from algocapture.learners import SGD, Stacked
from algocapture.models import Transformer
from algocapture.protocol import Limits, WholeInterval
from algocapture.stats import SequentialTest
from algocapture.tasks import MinCut

COST = {"gpu": "one H200, minutes; 40 layers 10 min"}
DEPTHS = (4, 40)


def experiment() -> dict[str, Experiment]:
    return {f"min-cut-{depth}": _cuts(depth) for depth in DEPTHS}


def _cuts(depth: int) -> Experiment:
    model = Transformer(depth=depth, width=128, heads=4, position="marks", classes=32)
    training = SGD(
        model=model,
        lr=1e-3 if depth < 12 else 3e-4,
        warmup=200,
        precision="bf16",
        micro_tokens=1_500_000,
        compile=True,
    )
    return Experiment(
        task=MinCut(),
        learner=Stacked(training=training),
        protocol=WholeInterval(
            t0=10,
            delta=0.2,
            batch=1024,
            test=SequentialTest(looks=128, chunk=512, maximum=8192),
            probes=(),
            baseline_samples=2048,
        ),
        limits=Limits(largest=50, samples=20_000_000),
        seeds=3,
        population=3,
        device="cuda",
        keep_models=False,  # writing them would take longer than training does
    )
