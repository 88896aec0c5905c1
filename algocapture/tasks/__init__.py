"""What is to be learnt: one file per task."""

from algocapture.tasks.base import Exponents, Task
from algocapture.tasks.grammar import GrammarRecognition
from algocapture.tasks.grammars import Grammar
from algocapture.tasks.induction import Induction
from algocapture.tasks.min_cut import MinCut
from algocapture.tasks.shortest_path import ShortestPath
from algocapture.tasks.sorting import Sorting
from algocapture.tasks.string_match import StringMatch
from algocapture.types import TaskSpec

__all__ = [
    "Exponents",
    "Grammar",
    "GrammarRecognition",
    "Induction",
    "MinCut",
    "ShortestPath",
    "Sorting",
    "StringMatch",
    "Task",
    "TaskSpec",
]
