"""Algorithms for every task, their operations counted: exponents, truncation at mean/delta."""

from __future__ import annotations

from algocapture.studies.epths import Epths

COST = {"cpu": "1 core, 3 min, 1.2 GB"}


def study() -> Epths:
    return Epths()
