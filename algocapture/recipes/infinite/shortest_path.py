"""Does an infinite-width transformer capture shortest paths? The NNGP predictor, in two steps.

Two bidirectional blocks read at the mean of all tokens, points of 2 coordinates in radii (so that
an edge looks the same at every T) with marks for source and target; the number of edges is
regressed, an error being half an edge or more. Depth 2 passes on what lies within a few edges:
longer paths cannot be expressed. `--set learner.kind=ntk` for the NTK.
"""

from __future__ import annotations

from algocapture.experiment import Experiment
from algocapture.kernels import InfiniteTransformer
from algocapture.learners import KernelRegression
from algocapture.protocol import Incremental, Limits
from algocapture.stats import SequentialTest
from algocapture.tasks import ShortestPath

COST = {"cpu": "2 cores, 1 min, 4 GB"}


def experiment() -> Experiment:
    return Experiment(
        task=ShortestPath(coordinates="radius"),
        learner=KernelRegression(
            kernel=InfiniteTransformer(depth=2, weight_var=2.0, readout="mean"),
            ridge=1e-2,
            samples=64,
            key_dim=16,
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
