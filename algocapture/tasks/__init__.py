"""What is to be learnt: one file per task."""

from algocapture.tasks.base import Exponents, Task
from algocapture.types import TaskSpec

__all__ = ["Exponents", "Task", "TaskSpec"]
