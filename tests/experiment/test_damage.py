"""Damage to a finished run is noticed, and repaired by entering it again."""

import errno
import os

import pytest

from algocapture.experiment import UnitsFailed, drive
from algocapture.launch import Inline
from algocapture.store import StoreError, files, verify
from tests.test_crash import EXPERIMENT


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert drive(EXPERIMENT, folder, Inline())
    return folder


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-3])


def delete(path):
    path.unlink()


NAMES = ["seed-0000/stage-001.json", "seed-0001/stage-003.json", "result.json", "meta.json"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("harm", [flip, truncate, delete])
def test_damage_is_repaired(finished, name, harm):
    expected = (finished / "result.json").read_bytes()
    harm(finished / name)
    said = []
    assert drive(EXPERIMENT, finished, Inline(), notify=said.append)
    assert verify(finished).ok
    assert (finished / "result.json").read_bytes() == expected
    # Without its last stage a run looks like one that was killed before writing it: no message.
    if "stage" in name and (name, harm) != (NAMES[1], delete):
        assert any(name in message for message in said)


def test_all_checkpoints_and_a_stage_are_lost(finished):
    """Then the unit is computed again, and its other stages must come out the same."""
    expected = (finished / "result.json").read_bytes()
    for checkpoint in (finished / "unit-001").glob("checkpoint-*"):
        flip(checkpoint)
    delete(finished / "seed-0001" / "stage-001.json")
    assert drive(EXPERIMENT, finished, Inline(), notify=lambda message: None)
    assert verify(finished).ok
    assert (finished / "result.json").read_bytes() == expected


def test_a_full_disk_is_one_message_and_the_run_goes_on(finished, tmp_path, monkeypatch):
    def full(point, path):
        if point == "write" and path.name.startswith("checkpoint-00000002"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(files, "fault", full)
        with pytest.raises(
            UnitsFailed, match=r"(?s)exit code 2 .*\nError: cannot write "
        ) as failed:
            drive(EXPERIMENT, tmp_path / "run", Inline())
    assert "Traceback" not in str(failed.value)
    assert "No space left on device" in str(failed.value)
    assert drive(EXPERIMENT, tmp_path / "run", Inline())
    expected = (finished / "result.json").read_bytes()
    assert (tmp_path / "run" / "result.json").read_bytes() == expected


def test_a_damaged_configuration_is_one_message(finished):
    flip(finished / "config.json")
    with pytest.raises(StoreError, match=r"config\.json is damaged"):
        drive(EXPERIMENT, finished, Inline())
