"""Table 1 of the paper, measured: costs and errors of kernel estimates and forward passes."""

from __future__ import annotations

from algocapture.studies.table1 import Table1

COST = {"cpu": "1 core, 6 min, 2 GB (estimate)"}


def study() -> Table1:
    return Table1()
