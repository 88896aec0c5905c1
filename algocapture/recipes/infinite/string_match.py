"""Does an infinite-width transformer capture string matching? The NNGP predictor, in two steps.

Two bidirectional blocks, 3 letters, patterns of 2, tokens encoded with their positions. At
sizes of a CPU the predictor interpolates: what a stage costs grows with T until the limit on
samples ends it (docs/results/infinite.md). `--set learner.kind=ntk` for the NTK.
"""

from __future__ import annotations

from algocapture.experiment import Experiment
from algocapture.kernels import InfiniteTransformer
from algocapture.learners import KernelRegression
from algocapture.protocol import Incremental, Limits
from algocapture.stats import SequentialTest
from algocapture.tasks import StringMatch

COST = {"cpu": "2 cores, 7 min, 14 GB (7 with --launcher inline)"}


def experiment() -> Experiment:
    return Experiment(
        task=StringMatch(alphabet=3, pattern_length=2),
        learner=KernelRegression(
            kernel=InfiniteTransformer(depth=2, weight_var=2.0, readout="last", score_scale=3.0),
            ridge=1e-2,
            samples=64,
            key_dim=16,
            positions=8,
            length_scale=1.0,
        ),
        protocol=Incremental(
            t0=5,
            delta=0.25,
            growth=1.3,
            batch=32,
            test=SequentialTest(beta=0.05, looks=20, chunk=64, maximum=256),
            probes=(2.0,),
            probe_samples=64,
        ),
        limits=Limits(largest=7, samples=384),
        seeds=2,
    )
