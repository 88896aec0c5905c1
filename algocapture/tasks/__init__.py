"""What is to be learnt: one file per task."""

from algocapture.tasks.base import Exponents, Task
from algocapture.tasks.induction import Induction
from algocapture.tasks.sorting import Sorting
from algocapture.types import TaskSpec

__all__ = ["Exponents", "Induction", "Sorting", "Task", "TaskSpec"]
