"""The live table and the plain lines: one line for each seed, from events alone."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from algocapture.cli import progress
from algocapture.cli.progress import Progress
from tests.experiment.tiny import tiny

LOOK = {"event": "look", "seed": 1, "stage": 1, "size": 5, "error": 0.5, "low": 0.4, "high": 0.6}
STAGE = {"event": "stage", "seed": 0, "index": 0, "size": 4, "spent": 640}


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands still until it is moved."""
    held = [1000.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: held[0]))
    return held


def test_a_row_says_size_samples_error_rate_and_time_left(now: list[float]) -> None:
    held = Progress(tiny(), Console(file=io.StringIO(), width=200), quiet=False)
    train = {"event": "train", "seed": 1, "stage": 0, "size": 4, "loss": 1.0}
    for seconds, samples in ((0, 100), (4, 900), (6, 1300)):
        now[0] = 1000.0 + seconds
        held.watch("unit-000", train | {"samples": samples})
    assert held.rows[1].pace == (1300 - 100) / 6
    now[0] = 1010.0
    held.watch("unit-000", STAGE | {"seed": 1, "outcome": "passed", "limit": None})
    held.watch("unit-000", LOOK | {"samples": 0})
    text = Console(file=io.StringIO(), width=200)
    text.print(held._table())
    first, second, third = text.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert first.split() == ["seed", "stage", "T", "samples", "P", "error", "[95%]", "samples/s",
                             "left"]  # fmt: skip
    assert second.split() == ["0", "1/3", "0", "0", "waits"]
    assert third.split() == ["1", "2/3", "5", "0", "640", "0.500", "[0.400,", "0.600]", "200", "20",
                             "s", "looks"]  # fmt: skip


@pytest.mark.parametrize(
    ("outcome", "limit", "said"),
    [
        ("passed", None, "passed  P = 640"),
        ("censored", "samples", "censored by the limit on samples  P = 640"),
        ("censored", "loss not finite", "censored: loss not finite  P = 640"),
    ],
)
def test_a_plain_line_says_how_a_stage_ended(outcome: str, limit: str | None, said: str) -> None:
    text = io.StringIO()
    held = Progress(tiny(), Console(file=text, width=200), quiet=False)
    held.watch("unit-000", STAGE | {"outcome": outcome, "limit": limit})
    assert said in text.getvalue()


def test_quiet_says_nothing() -> None:
    text = io.StringIO()
    held = Progress(tiny(), Console(file=text, width=200), quiet=True)
    held.watch("unit-000", STAGE | {"outcome": "passed", "limit": None})
    held.watch("unit-000", {"event": "unit", "state": "retried", "code": -9, "log": ""})
    assert text.getvalue() == ""
