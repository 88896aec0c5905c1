"""Finite width against the limit: the paper's assumption and proposition on P^gamma / N."""

from algocapture.studies.convergence.study import Convergence

__all__ = ["Convergence"]
