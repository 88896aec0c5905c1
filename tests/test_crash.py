"""Runs that are killed and resumed end in the same bytes, and never lose what was decided."""

import errno
import os
import resource
import signal
import tempfile
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from algocapture.store import RunFolder, StoreError, files, verify
from tests.crash import CRASHED, POINTS, REFUSED, Campaign, FailFrom, KillAt, in_child, toy


@pytest.fixture
def memory():
    """Memory instead of a disk: a kill leaves the same there, and an fsync costs nothing."""
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        yield Path(folder)


def test_kills_at_every_primitive(memory):
    """At the 1st, 2nd, 3rd, 5th, ... occurrence of each kind, until the run gets by."""
    campaign = Campaign(toy, memory)
    for point in POINTS:
        occurrence, after = 1, 2
        while campaign.kill(KillAt(point, occurrence)):
            occurrence, after = after, occurrence + after
    campaign.finish()
    assert campaign.kills >= 50


def test_kills_at_random_instants(memory):
    campaign = Campaign(toy, memory)
    generator = np.random.default_rng(0)
    while campaign.kills < 50:
        campaign.kill(after=generator.uniform(0, campaign.seconds / 2))
    campaign.finish()


DISKS = [(errno.ENOSPC, 7), (errno.EROFS, 31), (errno.EIO, 31), (errno.EACCES, 31)]


@pytest.mark.parametrize(("number", "stride"), DISKS)
def test_a_disk_that_fails(memory, number, stride):
    """From any primitive on: one clear error, the old state or the new, and a resume that ends."""
    campaign = Campaign(toy, memory)
    for nth in count(1, stride):
        code = in_child(toy, campaign.folder, FailFrom(number, nth))
        assert code in (0, REFUSED)
        campaign.check()
        campaign.finish()
        if code == 0:
            break
    assert campaign.finished > 100 / stride


def test_writes_that_are_always_short(memory):
    campaign = Campaign(toy, memory)
    assert in_child(toy, campaign.folder, lambda point, path: 100) == 0
    campaign.compare()


def test_a_kernel_that_refuses_to_write_more(memory):
    """A true limit instead of an injected fault: the write is cut, then fails."""
    campaign = Campaign(toy, memory)

    def limited(folder):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
        toy(folder)

    assert in_child(limited, campaign.folder) == REFUSED
    campaign.check()
    campaign.finish()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write in read-only folders")
def test_a_read_only_folder(tmp_path):
    (tmp_path / "run").mkdir(mode=0o500)
    with pytest.raises(StoreError, match="Permission denied"):
        toy(tmp_path / "run")


def test_a_damaged_checkpoint_at_any_time(memory):
    """The newest checkpoint of a killed run is damaged: the previous one leads to the same end."""
    campaign = Campaign(toy, memory)
    generator = np.random.default_rng(1)
    damaged = 0
    for _ in range(12):
        in_child(toy, campaign.folder, KillAt("rename", int(generator.integers(8, 20))))
        for unit in sorted(campaign.folder.glob("unit-*")):
            for newest in sorted(unit.glob("checkpoint-*"))[-1:]:
                data = bytearray(newest.read_bytes())
                data[int(generator.integers(len(data)))] ^= 1 << int(generator.integers(8))
                newest.write_bytes(data)
                damaged += 1
        campaign.finish()
    assert damaged >= 12


def test_two_drivers_on_one_folder(memory):
    campaign = Campaign(toy, memory)
    with RunFolder.enter(campaign.folder, {"type": "Toy", "sizes": [8, 10, 12]}, {}):
        assert in_child(toy, campaign.folder) == REFUSED
    campaign.finish()


def test_the_harness_sees_a_lost_result(memory, monkeypatch):
    """A store that renames without a whole file behind it is caught."""

    def careless(path, data, durable=True):
        files._point("create", path)
        with open(path, "wb") as file:
            for byte in range(0, len(data), 64):
                files._point("write", path)
                file.write(data[byte : byte + 64])
                file.flush()

    campaign = Campaign(toy, memory)
    monkeypatch.setattr(files, "write_atomic", careless)
    with pytest.raises((AssertionError, StoreError)):
        [campaign.kill(KillAt("write", nth)) for nth in range(1, 60, 3)]


def test_a_child_that_crashes_is_seen(memory, capfd):
    assert in_child(lambda folder: 1 / 0, memory) == CRASHED
    assert "ZeroDivisionError" in capfd.readouterr().err
    assert not verify_or_none(memory)


def verify_or_none(folder):
    try:
        return verify(folder)
    except StoreError:
        return None
