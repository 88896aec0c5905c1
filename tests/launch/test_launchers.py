"""Launchers: same outcomes wherever units run; deaths are retried, failures collected."""

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace

import pytest

from algocapture.launch import (
    DONE,
    FAILED,
    INTERRUPTED,
    USAGE,
    Inline,
    Outcome,
    Processes,
    Stop,
    Unit,
    exit_code,
)

stopping = importlib.import_module("algocapture.launch.stop")
ROOT = Path(__file__).resolve().parents[2]
LAUNCHERS = [Inline(), Processes(cores=2)]
PRELUDE = "from algocapture.launch import connect, Stop\nimport os, sys, time, signal\n"


@pytest.fixture(autouse=True)
def _at_root(monkeypatch):
    monkeypatch.chdir(ROOT)  # so that `python -c` imports this tree


def command(body):
    return (sys.executable, "-c", PRELUDE + textwrap.dedent(body))


def work(number, emit):
    emit({"event": "looked", "unit": number})
    if number == 2:
        raise ValueError("two is bad")
    return {3: USAGE, 4: INTERRUPTED}.get(number, DONE)


WORK = """
    emit = connect()
    print("log of", {n})
    emit({{"event": "looked", "unit": {n}}})
    if {n} == 2:
        raise ValueError("two is bad")
    sys.exit({{3: 2, 4: 3}}.get({n}, 0))
"""


def units(n):
    """Lazily: a launcher needs no list."""
    return (
        Unit(f"unit {i}", partial(work, i), command(WORK.format(n=i)), threads=1) for i in range(n)
    )


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=["inline", "processes"])
def test_outcomes_do_not_depend_on_the_launcher(launcher):
    events = []
    outcomes = launcher.run(units(6), lambda name, event: events.append((name, event)))
    assert [o.name for o in outcomes] == [f"unit {i}" for i in range(6)]
    assert [o.code for o in outcomes] == [DONE, DONE, FAILED, USAGE, INTERRUPTED, DONE]
    assert "ValueError: two is bad" in outcomes[2].log
    assert outcomes[0].log == ""
    looked = {(name, e["unit"]) for name, e in events if e["event"] == "looked"}
    assert looked == {(f"unit {i}", i) for i in range(6)}
    states = [e["state"] for name, e in events if name == "unit 0" and e["event"] == "unit"]
    assert states == ["started", "ended"]
    assert exit_code(outcomes) == FAILED
    assert launcher.run([]) == []


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=["inline", "processes"])
def test_nothing_begins_after_the_stop(launcher):
    outcomes = launcher.run(units(3), stop=lambda: True)
    assert [o.code for o in outcomes] == [INTERRUPTED] * 3
    assert exit_code(outcomes) == INTERRUPTED


@pytest.mark.parametrize(
    ("codes", "whole"),
    [((), 0), ((0, 0), 0), ((0, 3), 3), ((3, 1), 1), ((0, 2), 2), ((2, 1), 1), ((-9, 3), 1)],
)
def test_exit_code(codes, whole):
    assert exit_code([Outcome("u", code) for code in codes]) == whole


def one(body, threads=1):
    return Unit("u", lambda emit: DONE, command(body), threads)


def test_a_death_is_retried_once(tmp_path):
    body = f"""
        emit = connect()
        emit({{"event": "before"}})
        print("last words", flush=True)
        if not os.path.exists({str(tmp_path / "second")!r}):
            open({str(tmp_path / "second")!r}, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    events = []
    (outcome,) = Processes().run([one(body)], lambda name, event: events.append(event))
    assert outcome == Outcome("u", DONE, 2)
    retried = [e for e in events if e.get("state") == "retried"]
    assert retried == [{"event": "unit", "state": "retried", "code": -9, "log": "last words\n"}]
    always = one("print('gone'); sys.stdout.flush(); os.kill(os.getpid(), signal.SIGSEGV)")
    assert Processes().run([always]) == [Outcome("u", -signal.SIGSEGV, 2, "gone\n")]


def test_only_the_tail_of_a_log_is_kept():
    (outcome,) = Processes().run([one("print('x' * 1_000_000); print('end'); sys.exit(2)")])
    assert outcome.log.endswith("xx\nend\n")
    assert len(outcome.log) == 8192


def test_what_is_no_event_is_ignored():
    body = """
        pipe = int(os.environ["ALGOCAPTURE_EVENTS"])
        os.write(pipe, b"garbage\\n[1]\\n\\xff\\n{" + b"{" * 3_000_000 + b"\\n")
        connect()({"event": "x", "text": "\\u2028" * 10})
        os.write(pipe, b'{"event": "cut"')
    """
    events = []
    assert Processes().run([one(body)], lambda name, event: events.append(event))[0].code == DONE
    assert [e["event"] for e in events] == ["unit", "x", "unit"]


def test_a_command_that_does_not_exist():
    (outcome,) = Processes().run([Unit("u", lambda emit: DONE, ("/nonexistent/program",))])
    assert outcome.code == FAILED
    assert "No such file" in outcome.log


# Ends when as many have begun as may run at once, however slowly they start; then waits a little,
# so that one too many would be seen.
THREADS = """
    emit, folder = connect(), {folder!r}
    emit({{"event": "at", "begin": time.monotonic(), "omp": os.environ["OMP_NUM_THREADS"]}})
    open(os.path.join(folder, str(os.getpid())), "w").close()
    deadline = time.monotonic() + 60
    while len(os.listdir(folder)) < {at_once} and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.2)
    emit({{"event": "at", "end": time.monotonic()}})
"""


@pytest.mark.parametrize(
    ("cores", "threads", "number", "begin"),
    [(2, 1, 5, 2), (2, 1, 3, 3), (2, 2, 3, 1), (1, 4, 3, 1), (1, 1, 3, 1)],
)
def test_as_many_at_once_as_cores_allow(cores, threads, number, begin, tmp_path):
    """And a rest that would leave a core idle in a turn of its own joins the turn before."""
    moments = []

    def watch(name, event):
        if "begin" in event:
            assert event["omp"] == str(threads)
        if event["event"] == "at":
            moments.append((event.get("begin") or event["end"], 1 if "begin" in event else -1))

    body = THREADS.format(folder=str(tmp_path), at_once=begin)
    Processes(cores).run([one(body, threads)] * number, watch)
    changes = [change for _, change in sorted(moments)]
    assert changes.index(-1) == begin
    running = list(accumulate(changes))
    assert max(running) <= max(begin, 2 * cores - 1)
    assert running[-1] == 0


STUBBORN = """
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    connect()({"event": "ready"})
    while True:
        time.sleep(0.01)
"""
POLITE = """
    emit = connect()
    with Stop() as stop:
        emit({"event": "ready"})
        while not stop():
            time.sleep(0.01)
        sys.exit(3)
"""


@pytest.mark.parametrize("body", [POLITE, STUBBORN], ids=["polite", "stubborn"])
def test_the_stop_reaches_running_workers(body):
    ready = []

    def watch(name, event):
        ready.extend([name] * (event["event"] == "ready"))

    outcomes = Processes(cores=1, grace=0.2).run([one(body), one(body)], watch, lambda: bool(ready))
    assert [o.code for o in outcomes] == [INTERRUPTED, INTERRUPTED]
    assert len(ready) == 1


def test_no_worker_outlives_an_error_of_the_driver():
    pids = []

    def watch(name, event):
        if event["event"] == "pid":
            pids.append(event["pid"])
            raise RuntimeError("the display broke")

    body = "connect()({'event': 'pid', 'pid': os.getpid()})\ntime.sleep(60)"
    with pytest.raises(RuntimeError, match="display"):
        Processes().run([one(body)], watch)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


DRIVER = """
    import json, os, sys, signal
    from algocapture.launch import Processes, Unit
    def watch(name, event):
        if event["event"] == "ready":
            print(event["pid"], flush=True)
    Processes().run([Unit("u", None, tuple(json.loads(sys.argv[1])))], watch)
"""


def test_no_worker_outlives_a_killed_driver():
    """Not even one that does not heed signals."""
    body = """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        connect()({"event": "ready", "pid": os.getpid()})
        time.sleep(60)
    """
    driver = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(DRIVER), json.dumps(command(body))],
        stdout=subprocess.PIPE,
    )
    with driver:
        worker = Path("/proc", driver.stdout.readline().decode().strip(), "stat")
        driver.kill()
    deadline = time.monotonic() + 60
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # gone and waited for
        while worker.read_text().split()[2] != "Z":  # gone, but not yet waited for
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_signals_ask_to_stop(number):
    before = signal.getsignal(number)
    with Stop() as stop:
        assert not stop()
        os.kill(os.getpid(), number)
        assert stop()
        assert stop.why == number.name
    assert signal.getsignal(number) is before


def test_a_second_interrupt_is_not_patient():
    with Stop():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_time_limit(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(stopping, "time", SimpleNamespace(monotonic=lambda: now[0]))
    stop = Stop(2.0)
    now[0] = 101.9
    assert not stop()
    now[0] = 102.0
    assert stop()
    assert stop.why == "time limit"
    with pytest.raises(ValueError, match="seconds must be at least 0"):
        Stop(-1)
    with pytest.raises(ValueError, match="cores must be at least 1"):
        Processes(0)
