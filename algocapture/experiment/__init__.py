"""Where all parts meet."""

from algocapture.experiment.configuration import Experiment
from algocapture.experiment.driver import Recipe, UnitsFailed, drive, unfinished
from algocapture.experiment.unit import work

__all__ = ["Experiment", "Recipe", "UnitsFailed", "drive", "unfinished", "work"]
