"""The experiment as people write it: a configuration that can be run.

results = Experiment(task=Induction(), learner=SGD(model=Transformer())).run("runs/induction")
results.verdict(), results.table(), results.figures(), results.report()
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from algocapture.config import USER, register
from algocapture.experiment.configuration import Configuration
from algocapture.experiment.driver import drive
from algocapture.launch import Inline, Launcher, Processes
from algocapture.launch.base import Watch
from algocapture.report import Results


@register
@dataclass(frozen=True)
class Experiment(Configuration):
    """A capture test: what is learnt, by whom, how it is asked, how often."""

    def run(
        self,
        out: Path | str,
        launcher: Launcher | None = None,
        *,
        watch: Watch = lambda unit, event: None,
        notify: Callable[[str], None] | None = None,
        time_limit: float | None = None,
    ) -> Results:
        """Begin, continue or extend the run in the folder `out`; Ctrl-C stops it, resumable.

        Without a launcher: several units on the CPU in processes of their own, if these can know
        all classes; anything else in this process.
        """
        chosen = launcher or self._launcher()
        drive(self, out, chosen, watch=watch, notify=notify, time_limit=time_limit)
        return Results(Path(out))

    def _launcher(self) -> Launcher:
        own = f'"{USER}' in json.dumps(self.identity())  # a class of this notebook or script
        return Inline() if own or self.device != "cpu" or self.units() == 1 else Processes()
