"""Where all parts meet."""

from algocapture.experiment.configuration import FREE
from algocapture.experiment.driver import Recipe, UnitsFailed, drive, unfinished
from algocapture.experiment.estimate import estimate
from algocapture.experiment.exporting import export_model, load_exported
from algocapture.experiment.measuring import conduct, measure_part, stored_study, unmeasured
from algocapture.experiment.probing import evaluate, load_model, stored_experiment
from algocapture.experiment.running import Experiment
from algocapture.experiment.sinks import Sink
from algocapture.experiment.sweep import Swept, sweep
from algocapture.experiment.unit import work

__all__ = [
    "FREE",
    "Experiment",
    "Recipe",
    "Sink",
    "Swept",
    "UnitsFailed",
    "conduct",
    "drive",
    "estimate",
    "evaluate",
    "export_model",
    "load_exported",
    "load_model",
    "measure_part",
    "stored_experiment",
    "stored_study",
    "sweep",
    "unfinished",
    "unmeasured",
    "work",
]
