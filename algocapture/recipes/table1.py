"""Table 1 of the paper, measured: costs and errors of kernel estimates and forward passes."""

from __future__ import annotations

from algocapture.studies.table1 import Table1

COST = {"cpu": "1 core, 7 min, 1.6 GB"}


def study() -> Table1:
    return Table1()
