"""Algorithms that count their own elementary operations: two or more for each task."""

from algocapture.complexity.schemes.base import UNLIMITED, Outcome, Scheme
from algocapture.complexity.schemes.catalogue import SCHEMES, find, schemes_of

__all__ = ["SCHEMES", "UNLIMITED", "Outcome", "Scheme", "find", "schemes_of"]
