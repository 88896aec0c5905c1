"""A run of a second: the smallest real experiment, shared by the tests of runs."""

from __future__ import annotations

from algocapture.experiment import Experiment
from algocapture.learners import SGD
from algocapture.models import Transformer
from algocapture.protocol import Incremental, Limits
from algocapture.stats import SequentialTest
from algocapture.tasks import Induction

TEST = SequentialTest(looks=32, beta=0.1, chunk=64, maximum=512)
PROTOCOL = Incremental(t0=4, delta=0.45, batch=32, test=TEST, probes=(2.0,), baseline_samples=32)


def tiny(**changes: object) -> Experiment:
    fields: dict[str, object] = {
        "task": Induction(vocab=3),
        "learner": SGD(model=Transformer(depth=2, width=16, heads=2, mlp=16), lr=1e-2, warmup=5),
        "protocol": PROTOCOL,
        "limits": Limits(largest=6, samples=20_000),
        "seeds": 2,
    }
    return Experiment(**(fields | changes))  # type: ignore[arg-type]
