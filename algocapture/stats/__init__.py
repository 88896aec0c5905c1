"""Curves, fits, the sequential test and the verdict. No torch."""

from algocapture.stats.curve import Curve
from algocapture.stats.deltas import Deltas, judge_deltas
from algocapture.stats.judge import Facts, judge
from algocapture.stats.sequential import Look, SequentialTest, next_look
from algocapture.stats.verdict import Verdict

__all__ = [
    "Curve",
    "Deltas",
    "Facts",
    "Look",
    "SequentialTest",
    "Verdict",
    "judge",
    "judge_deltas",
    "next_look",
]
