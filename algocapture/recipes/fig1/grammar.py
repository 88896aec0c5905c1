"""Panel (g): recognition of a context-free grammar from T0 = 10 at delta 40, 20 and 10%.

The paper's: 12 layers, width 128, 4 heads, bidirectional, mean-pooled, four seeds. Ours: RoPE,
batch, learning rate, looks.
"""

from __future__ import annotations

from algocapture.experiment import Experiment
from algocapture.learners import SGD, Stacked
from algocapture.models import Transformer
from algocapture.protocol import Incremental, Limits
from algocapture.stats import SequentialTest
from algocapture.tasks import GrammarRecognition

COST = {"gpu": "one H200, minutes"}
DELTAS = (0.4, 0.2, 0.1)


def experiment() -> dict[str, Experiment]:
    return {f"grammar-{100 * delta:g}": _recognition(delta) for delta in DELTAS}


def _recognition(delta: float) -> Experiment:
    model = Transformer(depth=12, width=128, heads=4, causal=False, rope_base=10_000.0)
    training = SGD(
        model=model, lr=5e-4, warmup=500, precision="bf16", micro_tokens=1_500_000, compile=True
    )
    return Experiment(
        task=GrammarRecognition(),
        learner=Stacked(training=training),
        protocol=Incremental(
            t0=10,
            delta=delta,
            batch=512,
            test=SequentialTest(looks=128, chunk=512, maximum=8192),
            probes=(),
            baseline_samples=2048,
        ),
        limits=Limits(largest=100, samples=20_000_000),
        seeds=4,
        population=4,
        device="cuda",
        keep_models=False,  # writing them would take longer than training does
    )
