"""The campaign of faults, reduced; and stores broken on purpose, which it must notice.

In full: `python -m benchmarks.faults` and `... faults_ray`; docs/results/faults.md.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from benchmarks import faults, faults_ray
from benchmarks.faults_broken import BROKEN
from benchmarks.faults_kinds import KINDS
from tests.crash import toy

# A broken store -> the kind of fault that shows it, how many of them, and in which column.
SHOWN = {
    "in-place": ("writes cut short, then killed", 12, "lost"),
    "no-rename": ("killed at a primitive of the store", 24, "by_hand"),
    "ledger": ("killed at a random instant", 12, "twice"),
    "one-checkpoint": ("newest checkpoint damaged", 8, "by_hand"),
}
QUICK = [name for name in KINDS if "workers" not in name]


@pytest.mark.parametrize("name", QUICK)
def test_nothing_is_lost(name: str) -> None:
    """On a toy run that uses the store as the real one does."""
    (row,) = faults.campaign(name, scale=4 / KINDS[name][0], work=toy).values()
    assert row.injected >= 4
    assert row.runs >= 1
    assert (row.lost, row.twice, row.by_hand) == (0, 0, 0), row.details


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_lost_by_any_kind(name: str) -> None:
    (row,) = faults.campaign(name, scale=6 / KINDS[name][0], seed=1).values()
    assert row.injected >= 6
    assert (row.lost, row.twice, row.by_hand) == (0, 0, 0), row.details


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_store_is_counted(name: str) -> None:
    kind, number, column = SHOWN[name]
    (row,) = faults.campaign(kind, scale=number / KINDS[kind][0], work=toy, broken=name).values()
    assert getattr(row, column) > 0, row


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", faults_ray.KINDS)
def test_nothing_is_lost_on_a_cluster(name: str) -> None:
    if "disk" in name and os.geteuid() != 0:
        pytest.skip("only root may mount a disk that can be filled")
    (row,) = faults_ray.campaign(10, name, 1, lambda rows: None).values()
    assert row.injected >= 1
    assert (row.lost, row.twice, row.by_hand) == (0, 0, 0), row.details


def test_an_audit_without_the_store(tmp_path: Path) -> None:
    """The audit reads stage files and results by itself: what is torn is seen as such."""
    (tmp_path / "seed-0003").mkdir()
    place = tmp_path / "seed-0003" / "stage-012.json"
    place.write_text(json.dumps({"body": {"size": 4}}))
    assert faults.stages_of(tmp_path) == {(3, 12): {"size": 4}}
    place.write_text('{"body": {"si')
    assert faults.stages_of(tmp_path) == {(3, 12): None}
    assert faults.result_of(tmp_path) is None
    row = {"account": "train", "samples": 10}
    stage = {"index": 0, "spent": 10, "ledger": [row]}
    good = {"seeds": [{"seed": 0, "stages": [stage]}]}
    assert faults.charged_twice(good, good) == []
    twice = {"seeds": [{"seed": 0, "stages": [stage | {"ledger": [row, row]}]}]}
    assert len(faults.charged_twice(twice, good)) == 1
    assert len(faults.charged_twice({"seeds": good["seeds"] * 2}, good)) == 1
    doubled = {"seeds": [{"seed": 0, "stages": [stage, stage]}]}
    assert len(faults.charged_twice(doubled, good)) == 1
