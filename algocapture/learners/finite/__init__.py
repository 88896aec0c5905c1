"""Finite networks of growing width beside the infinite-width predictor (docs/theory)."""

from algocapture.learners.finite.blocks import Size, size
from algocapture.learners.finite.correction import Correction, Problem, correction
from algocapture.learners.finite.flow import gradient_flow
from algocapture.learners.finite.langevin import Langevin, Schedule, langevin
from algocapture.learners.finite.posterior import Weighted, weighted_posterior
from algocapture.learners.finite.prior import prior_kernels

__all__ = [
    "Correction",
    "Langevin",
    "Problem",
    "Schedule",
    "Size",
    "Weighted",
    "correction",
    "gradient_flow",
    "langevin",
    "prior_kernels",
    "size",
    "weighted_posterior",
]
