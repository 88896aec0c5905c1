"""Algorithms for every task, their operations counted: exponents, truncation at mean/delta."""

from __future__ import annotations

from algocapture.studies.epths import Epths

COST = {"cpu": "1 core, 10 min, 1 GB (estimate)"}


def study() -> Epths:
    return Epths()
