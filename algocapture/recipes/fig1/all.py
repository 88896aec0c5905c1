"""Figure 1 of the paper: all panels in one folder."""

from __future__ import annotations

from algocapture.experiment import Experiment
from algocapture.recipes.fig1 import (
    grammar,
    induction,
    min_cut,
    shortest_path,
    sorting,
    string_match,
)

COST = {"gpu": "one H200, an hour"}


def experiment() -> dict[str, Experiment]:
    """In the order of the panels."""
    panels = (sorting, string_match, shortest_path, min_cut, grammar)
    named = {name: run for panel in panels for name, run in panel.experiment().items()}
    return {"induction": induction.experiment()} | named
