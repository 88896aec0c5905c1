"""Do finite networks follow the infinite-width predictor, and how fast as they grow?

Mean kernels, posteriors (exact and by Langevin dynamics) with the first correction f_U, gradient
flow, and rich training in the mean-field scaling; docs/theory/finite_width.md. `--set scale=10
--set device=cuda` measures with 20 times the draws, chains and networks.
"""

from __future__ import annotations

from algocapture.studies.convergence import Convergence

COST = {"cpu": "1 core, 9 min, 2 GB"}


def study() -> Convergence:
    return Convergence(scale=0.5)  # 1: sixteen minutes
