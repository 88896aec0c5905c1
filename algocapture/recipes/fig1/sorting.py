"""Panel (b): sorting from T0 = 50, vocabularies of 100, 200 and 300, three seeds each.

The paper's: 2 layers, width 128, 2 heads, MLP 1024, RoPE base 10,000, delta 5% of the tokens.
Ours: batch, learning rate, looks; sizes end where "repeat the previous token", which errs once a
run of equal letters, V (1 - exp(-T/V)) / T of the suffix, comes down to twice delta: T = 10 V.
"""

from __future__ import annotations

from algocapture.experiment import Experiment
from algocapture.learners import SGD, Stacked
from algocapture.models import Transformer
from algocapture.protocol import Incremental, Limits
from algocapture.stats import SequentialTest
from algocapture.tasks import Sorting

COST = {"gpu": "one H200, minutes"}
VOCABULARIES = (100, 200, 300)


def experiment() -> dict[str, Experiment]:
    return {f"sorting-{vocab}": _sorting(vocab) for vocab in VOCABULARIES}


def _sorting(vocab: int) -> Experiment:
    model = Transformer(depth=2, width=128, heads=2, mlp=1024, rope_base=10_000.0)
    training = SGD(
        model=model, lr=1e-3, warmup=200, precision="bf16", micro_tokens=1_500_000, compile=True
    )
    return Experiment(
        task=Sorting(vocab=vocab),
        learner=Stacked(training=training),
        protocol=Incremental(
            t0=50,
            delta=0.05,
            batch=256,
            test=SequentialTest(looks=128, chunk=64, maximum=2048),
            probes=(),
            baseline_samples=64,
        ),
        limits=Limits(largest=10 * vocab, samples=5_000_000),
        seeds=3,
        population=3,
        device="cuda",
        keep_models=False,  # writing them would take longer than training does
    )
