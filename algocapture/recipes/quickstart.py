"""The main job in minutes on two cores: does a small transformer capture induction?

A reduced induction task (vocabulary 16, T0 = 8 to T = 200), five seeds in one-thread processes.
"""

from __future__ import annotations

from algocapture.experiment import Experiment
from algocapture.learners import SGD
from algocapture.models import Transformer
from algocapture.protocol import Incremental, Limits
from algocapture.stats import SequentialTest
from algocapture.tasks import Induction

COST = {"cpu": "2 cores, 3 min, 1 GB"}


def experiment() -> Experiment:
    return Experiment(
        task=Induction(vocab=16),
        learner=SGD(model=Transformer(depth=2, width=64, heads=4, mlp=128), lr=2e-3, warmup=50),
        protocol=Incremental(
            t0=8,
            delta=0.1,
            batch=128,
            test=SequentialTest(looks=64, chunk=64, maximum=2048),
            probes=(2.0,),
        ),
        limits=Limits(largest=215, samples=200_000),
        seeds=5,
    )
