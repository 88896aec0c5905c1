"""What a run's folder says, for notebooks and scripts: verdict, table, figures, page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from algocapture.report.export import PAGE, write_page
from algocapture.report.html import figures
from algocapture.report.summary import Summary, summarise
from algocapture.stats import Verdict
from algocapture.store import read_table


@dataclass(frozen=True)
class Results:
    """Read anew at each call, so that they follow a run that goes on."""

    path: Path | str

    @property
    def summary(self) -> Summary:
        """The run as curves and facts."""
        return summarise(self.path)

    @property
    def complete(self) -> bool:
        """Is every stage decided? If not, `run` on the same folder goes on."""
        return self.summary.complete

    def verdict(self) -> Verdict:
        """What `algocapture verdict` prints; ValueError if the curves allow none."""
        return self.summary.verdict()

    def table(self) -> list[dict[str, Any]]:
        """One row for each decided stage: `pandas.DataFrame(results.table())`."""
        return read_table([self.path])

    def figures(self) -> dict[str, Figure]:
        """The figures that have something to show, by name: curve, exponent, cost, ..."""
        return figures([self.summary])

    def report(self, out: Path | str | None = None) -> Path:
        """Write the page, into the run's folder if nothing else is said."""
        return write_page([self.summary], Path(self.path) / PAGE if out is None else out)
