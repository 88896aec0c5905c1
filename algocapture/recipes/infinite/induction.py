"""Does an infinite-width transformer capture induction? The NNGP predictor, adapted in two steps.

Two causal blocks (fewer cannot express it), 4 symbols, tokens encoded with their positions. It
passes up to T = 6; T = 8 it did not pass with 512 samples (docs/results/infinite.md).
`--set learner.kind=ntk` for the NTK.
"""

from __future__ import annotations

from algocapture.experiment import Experiment
from algocapture.kernels import InfiniteTransformer
from algocapture.learners import KernelRegression
from algocapture.protocol import Incremental, Limits
from algocapture.stats import SequentialTest
from algocapture.tasks import Induction

COST = {"cpu": "2 cores, 3 min, 5 GB"}


def experiment() -> Experiment:
    return Experiment(
        task=Induction(vocab=4),
        learner=KernelRegression(
            kernel=InfiniteTransformer(
                depth=2, weight_var=2.0, causal=True, readout="last", score_scale=3.0
            ),
            ridge=1e-2,
            samples=64,
            key_dim=16,
            positions=8,
            length_scale=1.0,
        ),
        protocol=Incremental(
            t0=4,
            delta=0.25,
            growth=1.3,
            batch=32,
            test=SequentialTest(beta=0.05, looks=20, chunk=64, maximum=256),
            probes=(2.0,),
            probe_samples=64,
        ),
        limits=Limits(largest=6, samples=384),
        seeds=2,
    )
