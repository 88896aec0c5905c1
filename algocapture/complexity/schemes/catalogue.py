"""Every scheme, by task."""

from __future__ import annotations

from algocapture.complexity.schemes.base import Scheme
from algocapture.complexity.schemes.flows import FLOWS
from algocapture.complexity.schemes.grammar import GRAMMAR
from algocapture.complexity.schemes.induction import INDUCTION
from algocapture.complexity.schemes.paths import PATHS
from algocapture.complexity.schemes.sorting import SORTING
from algocapture.complexity.schemes.strings import STRINGS
from algocapture.config import nearest
from algocapture.tasks.base import Task

SCHEMES: tuple[Scheme, ...] = (*INDUCTION, *SORTING, *STRINGS, *GRAMMAR, *PATHS, *FLOWS)


def schemes_of(task: Task) -> tuple[Scheme, ...]:
    """The schemes for a task; none for a task of one's own."""
    return tuple(scheme for scheme in SCHEMES if isinstance(task, scheme.task))


def find(name: str) -> Scheme:
    for scheme in SCHEMES:
        if scheme.name == name:
            return scheme
    raise ValueError(f"there is no scheme {name!r}{nearest(name, [s.name for s in SCHEMES])}")
