"""One process per folder; the dead are recovered, the living respected, clocks ignored."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from algocapture.store import LockedError, StoreError, files
from algocapture.store.lock import Holder, Lock


def put(folder, number, holder):
    (folder / f".lock-{number:06d}").write_text(json.dumps(asdict(holder)))


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def test_second_is_refused_with_the_holder_named(tmp_path):
    with Lock(tmp_path), pytest.raises(LockedError, match=f"in use by process {os.getpid()} on "):
        Lock(tmp_path).__enter__()
    with Lock(tmp_path):  # released, so free again
        pass
    assert names(tmp_path) == [".lock-000002"]


HOLD = """
    import sys, time
    from pathlib import Path
    from algocapture.store.lock import Lock
    with Lock(Path(sys.argv[1])):
        print("held", flush=True)
        time.sleep(600)
"""


def test_another_process_is_respected_and_recovered_after_a_kill(tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLD), str(tmp_path)], stdout=subprocess.PIPE
    )
    with child:
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(LockedError, match=f"process {child.pid}"):
            Lock(tmp_path).__enter__()
        child.send_signal(signal.SIGKILL)
        # Not waited for: the killed child is a zombie, whose pid still exists.
        while Path(f"/proc/{child.pid}/stat").read_text().split()[2] != "Z":
            time.sleep(0.01)
        with Lock(tmp_path):
            pass


def test_a_reused_pid_is_not_the_holder(tmp_path):
    put(tmp_path, 1, replace(Holder.me(), start="1"))
    with Lock(tmp_path):
        pass


@pytest.mark.parametrize(
    "change", [{"host": "elsewhere"}, {"boot": "another"}, {"space": "pid:[1]"}]
)
def test_elsewhere_is_judged_by_the_counter(tmp_path, change):
    """Pids of another host, boot or container mean nothing here, even when equal to ours."""
    elsewhere = replace(Holder.me(), **change)
    put(tmp_path, 1, elsewhere)
    said = []
    with Lock(tmp_path, patience=0.1, notify=said.append):  # it did not move: dead
        pass
    assert "is alive" in said[0]
    put(tmp_path, 9, elsewhere)
    beats = []

    def advance(message):
        # What its heartbeat would do while we watch.
        beats.append(message)
        put(tmp_path, 9, replace(elsewhere, counter=len(beats)))
        os.utime(tmp_path / ".lock-000009", (0, 0))  # file times never decide

    with pytest.raises(LockedError, match="in use by process"):
        Lock(tmp_path, patience=60, notify=advance).__enter__()  # until it moves, and no longer


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"host": 1}', "\xff", "[" * 10_000])
def test_an_unreadable_lock_is_judged_by_not_moving(tmp_path, content):
    (tmp_path / ".lock-000004").write_bytes(content.encode("latin-1"))
    with Lock(tmp_path, patience=0.05):
        pass
    assert names(tmp_path) == [".lock-000005"]


def test_the_counter_advances_while_held(tmp_path):
    deadline = time.monotonic() + 60
    with Lock(tmp_path, beat=0.01):
        while json.loads((tmp_path / ".lock-000001").read_text())["counter"] < 3:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    held = json.loads((tmp_path / ".lock-000001").read_text())
    assert held["released"]


def test_a_holder_that_was_taken_over_writes_no_more(tmp_path):
    with Lock(tmp_path) as lock:
        lock.check()
        put(tmp_path, 2, replace(Holder.me(), host="elsewhere"))
        with pytest.raises(LockedError, match="taken over"):
            lock.check()
    assert not json.loads((tmp_path / ".lock-000002").read_text())["released"]


def test_waiting_for_a_holder_that_ends(tmp_path):
    import threading

    lock = Lock(tmp_path)
    lock.__enter__()
    threading.Timer(0.2, lock.__exit__, (None, None, None)).start()
    with Lock(tmp_path, wait=60):
        pass


RACE = """
    import os, sys, time
    from pathlib import Path
    from algocapture.store.lock import Lock, LockedError
    folder = Path(sys.argv[1])
    os.read(0, 1)  # all start when the pipe closes
    for _ in range(40):
        try:
            with Lock(folder / "run", wait=300):
                fd = os.open(folder / "inside", os.O_CREAT | os.O_EXCL)  # fails if not alone
                os.close(fd)
                with open(folder / "count", "a") as file:
                    file.write("x")
                os.unlink(folder / "inside")
                if os.getpid() % 2:
                    os.kill(os.getpid(), 0)
        except LockedError:
            pass
"""


def test_many_processes_never_hold_at_once(tmp_path):
    (tmp_path / "run").mkdir()
    put(tmp_path / "run", 1, replace(Holder.me(), start="1"))  # dead: all want to take over
    go, end = os.pipe()
    children = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(RACE), str(tmp_path)],
            stdin=go,
            stderr=subprocess.PIPE,
        )
        for _ in range(4)
    ]
    os.close(go)
    os.close(end)
    for child in children:
        assert child.communicate()[1] == b""
        assert child.returncode == 0
    assert (tmp_path / "count").read_text() == "x" * 160


def test_an_error_while_claiming_leaves_nothing(tmp_path, monkeypatch):
    def full(point, path):
        if point == "write":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "fault", full)
    with pytest.raises(StoreError, match="No space left"):
        Lock(tmp_path).__enter__()
    monkeypatch.setattr(files, "fault", None)
    assert names(tmp_path) == []
    with Lock(tmp_path):
        pass
