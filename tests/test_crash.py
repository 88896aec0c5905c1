"""Runs that are killed and resumed end in the same bytes, and never lose what was decided.

A forked child has torch loaded already, which is what makes a hundred kills cheap.
"""

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

from algocapture.experiment import drive
from algocapture.experiment import unit as units
from algocapture.launch import Processes
from algocapture.store import RunFolder
from tests.crash import POINTS, Campaign, KillAt, in_child
from tests.victim import EXPERIMENT, real


@pytest.fixture(scope="module")
def campaign():
    """Memory instead of a disk: a kill leaves the same there, and an fsync costs nothing."""
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=shared) as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(units, "CHECKPOINT_SECONDS", 0.0)  # after every step and look
        real(Path(folder) / "warm")  # what is compiled or cached lazily is there before forking
        yield Campaign(real, Path(folder))


def test_kills_at_every_primitive(campaign):
    """At the 1st, 2nd, 3rd, 5th, ... occurrence of each kind, until the run gets by."""
    before = campaign.kills
    for point in POINTS:
        occurrence, after = 1, 2
        while campaign.kill(KillAt(point, occurrence)):
            occurrence, after = after, occurrence + after
    campaign.finish()
    assert campaign.kills - before >= 65


def test_kills_at_random_instants(campaign):
    generator = np.random.default_rng(0)
    before = campaign.kills
    while campaign.kills - before < 35:
        campaign.kill(after=generator.uniform(0, campaign.seconds / 2))
    campaign.finish()


def test_samples_are_charged_once(campaign):
    """What a killed run's ledger charges is what its stages cost: nothing twice, nothing lost."""
    folder = campaign.folder
    for occurrence in (9, 13):
        assert campaign.kill(KillAt("fsync", occurrence))
    campaign.finish()
    run = RunFolder(folder)
    assert run.seeds() == [0, 1]
    for seed in run.seeds():
        stages = run.stages(seed)
        charged = sum(row["samples"] for row in stages[-1]["ledger"] if row["account"] == "train")
        assert charged == stages[-1]["spent"] == sum(stage["samples"] for stage in stages)


@pytest.mark.slow
def test_kills_of_a_driver_with_workers(campaign):
    """The driver is killed: its workers end at once, and the next driver continues."""

    def driven(folder):
        assert drive(EXPERIMENT, folder, Processes(cores=2))

    generator = np.random.default_rng(1)
    kills = 0
    for _ in range(15):
        killed = in_child(driven, campaign.folder, kill_after=generator.uniform(1, 8)) != 0
        kills += killed
        campaign.check()
        if not killed:
            campaign.compare()
    assert in_child(driven, campaign.folder) == 0
    campaign.compare()
    assert kills >= 3
