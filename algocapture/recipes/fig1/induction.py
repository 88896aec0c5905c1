"""Panel (a): induction from T0 = 50 to T = 10,000, five seeds as one stacked population.

The paper's: vocabulary 1024, 2 layers, width 256, 4 heads, RoPE base 500,000, growth 1.2.
Ours (it gives none): delta 5%, batch, learning rate, looks. Noise decides when the plateau at
chance ends: at T0 batch 256 with lr 1e-3 or 5e-4 and batch 512 with lr 1e-3 passed after 0.8, 1.2
and 1.1 million samples, batch 128 with lr 1e-3 and batch 512 with lr 2e-3 not at all (LOG.md).
"""

from __future__ import annotations

from algocapture.experiment import Experiment
from algocapture.learners import SGD, Stacked
from algocapture.models import Transformer
from algocapture.protocol import Incremental, Limits
from algocapture.stats import SequentialTest
from algocapture.tasks import Induction

COST = {"gpu": "one H200, minutes"}


def experiment() -> Experiment:
    return Experiment(
        task=Induction(),
        learner=Stacked(
            training=SGD(
                model=Transformer(depth=2, width=256, heads=4, rope_base=500_000.0),
                lr=1e-3,
                betas=(0.9, 0.98),
                weight_decay=0.1,
                warmup=200,
                precision="bf16",
                micro_tokens=1_500_000,
                compile=True,
            )
        ),
        protocol=Incremental(
            t0=50,
            delta=0.05,
            batch=256,
            test=SequentialTest(looks=128, chunk=256, maximum=1024),
            probes=(),
            baseline_samples=0,
        ),
        limits=Limits(largest=10_000, samples=5_000_000),
        seeds=5,
        population=5,
        device="cuda",
        keep_models=False,  # writing them would take longer than training does
    )
