"""A study: named parts, each measured once and kept, and what their rows say together.

    @register
    @dataclass(frozen=True)
    class Halves(Study):
        largest: int = 8

        def parts(self):
            return ("even", "odd")

        def measure(self, part):
            start = self.parts().index(part)
            return [{"n": n, "half": n / 2} for n in range(start, self.largest, 2)]

        def findings(self, rows):
            return Findings("Halves", {"halves": [row for part in rows.values() for row in part]})

A recipe's `study()` returns one; `algocapture run` measures the parts as units of work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from algocapture.config import to_json
from algocapture.rng import Seed
from algocapture.stats.findings import Findings, Row


def check_sizes(name: str, values: Any, least: int, count: int = 1) -> None:
    """A field that lists sizes: integers, enough of them different for what is fitted."""
    whole = all(isinstance(v, int) and not isinstance(v, bool) and v >= least for v in values)
    if not whole or len(set(values)) < count:
        raise ValueError(
            f"{name} must hold at least {count} different integers >= {least}, got {values!r}"
        )


@dataclass(frozen=True)
class Study(ABC):
    """All fields are the study's identity: another value is another study, in another folder."""

    root: int = 0  # of the tree of seeds
    threads: int = 1  # of a part
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise ValueError(f"threads must be >= 1, got {self.threads!r}")

    @abstractmethod
    def parts(self) -> tuple[str, ...]:
        """The names of the parts: letters a-z, digits and '-'. A part is measured as a whole: a
        stop waits for its end, a kill loses it, so that it should take a minute or two at most."""

    @abstractmethod
    def measure(self, part: str) -> list[Row]:
        """The rows of a part: plain JSON. Every draw comes from `seed(part)` or below."""

    @abstractmethod
    def findings(self, rows: Mapping[str, list[Row]]) -> Findings:
        """What the rows of all parts, by name, say: a function of nothing else."""

    def identity(self) -> dict[str, Any]:
        data: dict[str, Any] = to_json(self)
        return data

    def seed(self, part: str) -> Seed:
        return Seed(self.root).child(type(self).__name__, part)
