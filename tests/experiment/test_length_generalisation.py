"""The external check: without adaptation accuracy falls beyond the trained lengths, and goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from algocapture.experiment import drive
from algocapture.launch import Inline
from algocapture.store import RunFolder
from benchmarks.length_generalisation import accuracies, bands, experiment, reduced


def test_bands_are_the_published_ones() -> None:
    table = bands(50)
    assert {name: (min(of), max(of)) for name, of in table.items()} == {
        "1-50": (4, 47),
        "51-100": (52, 97),
        "101-150": (102, 147),
    }
    held = experiment()
    assert held.protocol.training_sizes(0, held.task.spec.smallest) == list(range(4, 51))
    assert held.protocol.sizes(held.limits.largest) == [50]


@pytest.mark.slow
def test_accuracy_falls_beyond_the_trained_lengths_and_goes_on(tmp_path: Path) -> None:
    """4,000 instances for each number: its standard error is below 0.008."""
    held = reduced()
    assert drive(held, tmp_path / "run", Inline())
    table = accuracies(RunFolder(tmp_path / "run"), held, samples=400)
    inside, twice, thrice = table.values()
    for seed in range(held.seeds):
        assert inside[seed] > 0.97
        assert twice[seed] < inside[seed] - 0.03
        assert thrice[seed] < twice[seed] - 0.05
        assert thrice[seed] > 2 / 16  # and is not chance
