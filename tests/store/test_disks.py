"""Failing disks, damaged checkpoints and two drivers, on a toy run that uses the store alone."""

import errno
import os
import resource
import signal
from itertools import count

import numpy as np
import pytest

from algocapture.store import RunFolder, StoreError, files
from tests.crash import CRASHED, REFUSED, Campaign, FailFrom, KillAt, in_child, toy

DISKS = [(errno.ENOSPC, 7), (errno.EROFS, 31), (errno.EIO, 31), (errno.EACCES, 31)]


@pytest.mark.parametrize(("number", "stride"), DISKS)
def test_a_disk_that_fails(tmp_path, number, stride):
    """From any primitive on: one clear error, the old state or the new, and a resume that ends."""
    campaign = Campaign(toy, tmp_path)
    for nth in count(1, stride):
        code = in_child(toy, campaign.folder, FailFrom(number, nth))
        assert code in (0, REFUSED)
        campaign.check()
        campaign.finish()
        if code == 0:
            break
    assert campaign.finished > 100 / stride


def test_writes_that_are_always_short(tmp_path):
    campaign = Campaign(toy, tmp_path)
    assert in_child(toy, campaign.folder, lambda point, path: 100) == 0
    campaign.compare()


def test_a_kernel_that_refuses_to_write_more(tmp_path):
    """A true limit instead of an injected fault: the write is cut, then fails."""
    campaign = Campaign(toy, tmp_path)

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


def test_a_damaged_checkpoint_at_any_time(tmp_path):
    """The newest checkpoint of a killed run is damaged: the previous one leads to the same end."""
    campaign = Campaign(toy, tmp_path)
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


def test_two_drivers_on_one_folder(tmp_path):
    campaign = Campaign(toy, tmp_path)
    with RunFolder.enter(campaign.folder, {"type": "Toy", "sizes": [8, 10, 12]}, {}):
        assert in_child(toy, campaign.folder) == REFUSED
    campaign.finish()


def test_the_harness_sees_a_lost_result(tmp_path, monkeypatch):
    """A store that renames without a whole file behind it is caught."""

    def careless(path, data, durable=True):
        files._point("create", path)
        with open(path, "wb") as file:
            for byte in range(0, len(data), 64):
                files._point("write", path)
                file.write(data[byte : byte + 64])
                file.flush()

    campaign = Campaign(toy, tmp_path)
    monkeypatch.setattr(files, "write_atomic", careless)
    with pytest.raises((AssertionError, StoreError)):
        [campaign.kill(KillAt("write", nth)) for nth in range(1, 60, 3)]


def test_a_child_that_crashes_is_seen(tmp_path, capfd):
    assert in_child(lambda folder: 1 / 0, tmp_path) == CRASHED
    assert "ZeroDivisionError" in capfd.readouterr().err
