"""What a measurement says: tables, exponents with intervals, and what is to be drawn of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from algocapture.stats.power import Exponent

Row = dict[str, Any]
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class Chart:
    """One figure: columns of a table against each other, a line for each value of `series`."""

    name: str  # of the file
    title: str  # says what the vertical axis shows
    table: str
    x: str
    y: str
    label: str  # of the horizontal axis
    series: str = ""  # the column that tells the lines apart
    error: str = ""  # the column with the standard error of y
    scale: Literal["log", "linear"] = "log"


@dataclass(frozen=True)
class Findings:
    """Everything a study's page shows. Values are plain JSON; a table's rows have equal keys."""

    title: str
    tables: dict[str, list[Row]]
    exponents: tuple[Exponent, ...] = ()
    charts: tuple[Chart, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        for name in (*self.tables, *(chart.name for chart in self.charts)):
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} becomes a file's name: letters, digits, '-' and '_'")
        for chart in self.charts:
            if chart.table not in self.tables:
                raise ValueError(
                    f"chart {chart.name!r} draws table {chart.table!r}; tables: "
                    f"{', '.join(self.tables)}"
                )

    def all_tables(self) -> dict[str, list[Row]]:
        """The tables, with the exponents as one of them."""
        rows = [exponent.row() for exponent in self.exponents]
        return ({"exponents": rows} if rows else {}) | self.tables
