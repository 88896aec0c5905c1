"""Whether Figure 1's verdicts hang on our choices: one change at a time, the rest as in the panel.

Induction and shortest paths with another batch, learning rate and growth factor (1.1 and 1.4 beside
the panel's 1.2); the graph tasks also with the corrected radius, connected instances, and points
in units of the radius, so that the rule of the edges is in the input.
"""

from __future__ import annotations

from algocapture.config import replace_field
from algocapture.experiment import Experiment
from algocapture.recipes.fig1 import induction, min_cut, shortest_path

COST = {"gpu": "one H200, an hour"}
GRAPHS = {
    "corrected": ("boundary_corrected", "true"),
    "connected": ("connected", "true"),
    "radius": ("coordinates", "radius"),
}


def experiment() -> dict[str, Experiment]:
    panel = induction.experiment()
    paths = shortest_path.experiment()["shortest-path-4"]
    cuts = min_cut.experiment()["min-cut-4"]
    return (
        {f"induction-{name}": made for name, made in _training(panel).items()}
        | {f"shortest-path-{name}": made for name, made in _training(paths).items()}
        | {f"shortest-path-{name}": _changed(paths, *change) for name, change in GRAPHS.items()}
        | {f"min-cut-{name}": _changed(cuts, *change) for name, change in GRAPHS.items()}
    )


def _changed(panel: Experiment, field: str, value: str) -> Experiment:
    made: Experiment = replace_field(panel, f"task.{field}", value)
    return made


def _training(panel: Experiment) -> dict[str, Experiment]:
    """Half and twice the batch, half the rate (twice does not leave induction's plateau)."""
    batch = panel.protocol.batch
    return {
        "growth-1.1": replace_field(panel, "protocol.growth", "1.1"),
        "growth-1.4": replace_field(panel, "protocol.growth", "1.4"),
        "batch-half": replace_field(panel, "protocol.batch", str(batch // 2)),
        "batch-double": replace_field(panel, "protocol.batch", str(2 * batch)),
        "rate-half": replace_field(panel, "learner.training.lr", "5e-4"),
    }
