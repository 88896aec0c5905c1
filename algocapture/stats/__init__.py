"""Curves, fits, the sequential test and the verdict. No torch."""

from algocapture.stats.sequential import Look, SequentialTest, next_look

__all__ = ["Look", "SequentialTest", "next_look"]
