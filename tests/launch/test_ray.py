"""Ray: the same outcomes and bytes as the other launchers, at one node and two, through losses."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from algocapture.experiment import drive, sweep
from algocapture.experiment.publishing import fetch
from algocapture.launch import DONE, FAILED, INTERRUPTED, USAGE, Inline, Outcome, Processes, Unit
from algocapture.launch.cluster import fits, refusal
from algocapture.launch.stamp import discrepancy, stamp
from algocapture.protocol import Limits
from algocapture.store import verify
from tests.experiment.tiny import tiny

ray = pytest.importorskip("ray")
from algocapture.launch.ray import Ray  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENT = tiny(seeds=3, limits=Limits(largest=5))
PRELUDE = "import os, sys, time, signal\nfrom algocapture.launch import connect, Stop\n"


def command(name: str, body: str, threads: int = 1) -> Unit:
    argv = (sys.executable, "-c", PRELUDE + textwrap.dedent(body))
    return Unit(name, lambda emit: DONE, argv, threads)


ENDS = """
    emit = connect()
    emit({{"event": "looked", "unit": {n}}})
    print("log of", {n}, os.environ["OMP_NUM_THREADS"])
    sys.exit({code})
"""


@pytest.fixture(autouse=True)
def _at_root(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ray does not wait for the processes that it ended: their handles are collected here."""
    monkeypatch.chdir(ROOT)
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def raylets() -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes()
        except OSError:
            continue
        if b"raylet" in text or b"gcs_server" in text:
            found.append(int(path.parent.name))
    return found


def gone(pids: set[int], seconds: float = 30) -> bool:
    """Within some time none of these processes is there any more, zombies aside."""
    deadline = time.monotonic() + seconds
    while left := pids & set(raylets()):
        if time.monotonic() > deadline:
            print(left)
            return False
        time.sleep(0.1)
    return True


def test_a_local_cluster_runs_units_and_leaves_nothing_behind() -> None:
    """Codes, logs, events, retries, a request that cannot be met: in one cluster, since it
    takes seconds to start."""
    before, handler = set(raylets()), signal.getsignal(signal.SIGTERM)
    codes = [DONE, FAILED, USAGE, INTERRUPTED, DONE]
    units = [
        command(f"u{n}", ENDS.format(n=n, code=code), threads=1 + n % 2)
        for n, code in enumerate(codes)
    ]
    events: list[tuple[str, dict[str, Any]]] = []
    outcomes = Ray().run(iter(units), lambda name, event: events.append((name, event)))
    assert [(o.name, o.code) for o in outcomes] == [(f"u{n}", c) for n, c in enumerate(codes)]
    assert [o.tries for o in outcomes] == [1, 2, 1, 1, 1]
    assert "log of 1 2" in outcomes[1].log
    assert outcomes[0].log == ""
    assert {(n, e["unit"]) for n, e in events if e["event"] == "looked"} == {
        (f"u{n}", n) for n in range(5)
    }
    states = [e["state"] for n, e in events if n == "u1" and e["event"] == "unit"]
    assert states == ["started", "retried", "ended"]
    assert signal.getsignal(signal.SIGTERM) is handler
    assert gone(set(raylets()) - before)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"cpus": -1}, "cpus = -1: expected a finite number >= 0"),
        ({"memory": float("nan")}, "memory = nan"),
        ({"gpus": 1.5}, "gpus = 1.5: expected a fraction of one GPU, or whole GPUs"),
        ({"address": "ray://head:10001"}, "start the run on a node of the cluster"),
    ],
)
def test_bad_fields(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Ray(**fields)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere", "127.0.0.1:x"])
def test_nobody_at_the_address(address: str) -> None:
    begun = time.monotonic()
    with pytest.raises(ValueError, match=f"address = '{address}': no Ray cluster answers"):
        Ray(address).run([command("u", "")])
    assert time.monotonic() - begun < 15


def test_how_many_units_fit_a_node() -> None:
    node = {"CPU": 4.0, "GPU": 2.0, "memory": 8e9}
    table = [
        ({"CPU": 1.0}, 4), ({"CPU": 1.0, "GPU": 0.25}, 4), ({"CPU": 0.5, "GPU": 0.5}, 4),
        ({"CPU": 3.0}, 1), ({"CPU": 5.0}, 0), ({"memory": 3e9}, 2), ({"TPU": 1.0}, 0),
    ]  # fmt: skip
    assert [fits(node, need) for need, _ in table] == [count for _, count in table]
    told = refusal("u", {"CPU": 5.0, "GPU": 1.0}, [node, {"CPU": 6.0}])
    assert told.startswith("u needs 5 CPU, 1 GPU on one node; the most there is: 6 CPU, 2 GPU")


def test_another_installation_is_named() -> None:
    mine = stamp()
    assert discrepancy(mine, dict(mine)) == ""
    other = mine | {"algocapture": "9.9"}
    del other["torch"]
    told = discrepancy(mine, other)
    assert f"algocapture 9.9 there, {mine['algocapture']} here" in told
    assert "torch none there" in told


# --- real clusters: slow


@pytest.fixture
def two_nodes() -> Iterator[Any]:
    """Two nodes of one core each on this machine."""
    from ray.cluster_utils import Cluster

    before = set(raylets())
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    cluster.extra = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    yield cluster
    cluster.shutdown()
    assert gone(set(raylets()) - before)


def results(folder: Path) -> dict[str, bytes]:
    found = sorted(folder.rglob("result.json"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.mark.slow
def test_results_are_the_same_bytes_on_one_node_and_two(two_nodes: Any, tmp_path: Path) -> None:
    """Also of a sweep, and when a store is all that the nodes have in common."""
    there = Ray(address=two_nodes.address)
    assert drive(EXPERIMENT, tmp_path / "inline", Inline())
    expected = results(tmp_path / "inline")
    for name, launcher in {"processes": Processes(), "one": Ray(), "two": there}.items():
        assert drive(EXPERIMENT, tmp_path / name, launcher)
        assert results(tmp_path / name) == expected
        assert verify(tmp_path / name).ok
    url = f"file://{tmp_path}/store"
    assert drive(EXPERIMENT, tmp_path / "published", there, publish=url)
    assert results(tmp_path / "published") == expected
    assert fetch(url, tmp_path / "fetched", print)
    assert results(tmp_path / "fetched") == expected
    two = {"a": EXPERIMENT, "b": tiny(seeds=2, limits=Limits(largest=4 + 1), root=1)}
    swept = sweep(two, tmp_path / "sweep", there)
    assert swept.complete == ("a", "b")
    assert results(tmp_path / "sweep")["a/result.json"] == expected["result.json"]


@pytest.mark.slow
def test_a_lost_node_costs_nothing(two_nodes: Any, tmp_path: Path) -> None:
    """Its units run again on the other one, which waits until the dead holder's lock stands
    still; then they continue from what was published."""
    url = f"file://{tmp_path}/store"
    seen: list[str] = []

    def watch(unit: str, event: dict[str, Any]) -> None:
        if event["event"] == "stage" and not seen:
            seen.append(unit)
            threading.Thread(target=two_nodes.remove_node, args=(two_nodes.extra, False)).start()

    longer = tiny(seeds=3, limits=Limits(largest=10))
    launcher = Ray(address=two_nodes.address)
    complete = drive(longer, tmp_path / "r", launcher, watch=watch, publish=url)
    assert complete
    assert drive(longer, tmp_path / "inline", Inline())
    assert results(tmp_path / "r") == results(tmp_path / "inline")


@pytest.mark.slow
def test_a_request_that_no_node_can_meet_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"u needs 64 CPU, 1 GPU on one node; the most there is"):
        Ray(cpus=64, gpus=1).run([command("u", "")])
    events: list[dict[str, Any]] = []
    few = [command("small", ""), command("large", "", threads=64), command("last", "")]
    outcomes = Ray().run(few, lambda name, event: events.append(event))
    assert [o.code for o in outcomes] == [DONE, USAGE, DONE]  # the others go on
    assert "large needs 64 CPU" in outcomes[1].log


POLITE = """
    emit = connect()
    with Stop() as stop:
        emit({"event": "ready"})
        while not stop():
            time.sleep(0.01)
        sys.exit(3)
"""
STUBBORN = """
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    connect()({"event": "ready"})
    time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("body", [POLITE, STUBBORN], ids=["polite", "stubborn"])
def test_the_stop_reaches_the_workers(body: str) -> None:
    ready: list[str] = []

    def watch(name: str, event: dict[str, Any]) -> None:
        ready.extend([name] * (event["event"] == "ready"))

    units = [command(f"u{n}", body) for n in range(5)]
    outcomes = Ray(cpus=2, grace=1.0).run(units, watch, lambda: bool(ready))
    assert [o.code for o in outcomes] == [INTERRUPTED] * 5
    assert len(ready) == 1


ALONE = """
    emit = connect()
    emit({"event": "from", "at": time.monotonic()})
    time.sleep(4)
    emit({"event": "to", "at": time.monotonic()})
"""


@pytest.mark.slow
def test_a_task_that_posts_keeps_its_cpus() -> None:
    """One that waits in `ray.get` lends them: then two units ran where one has room."""
    at: dict[str, list[float]] = {}

    def watch(name: str, event: dict[str, Any]) -> None:
        if event["event"] in ("from", "to"):
            at.setdefault(name, []).append(event["at"])

    cores = len(os.sched_getaffinity(0))
    units = [command(f"u{n}", ALONE) for n in range(3)]
    outcomes = Ray(cpus=cores).run(units, watch)
    assert [o.code for o in outcomes] == [DONE] * 3
    spans = sorted(at.values())
    assert all(first[1] < second[0] for first, second in itertools.pairwise(spans))


DRIVER = """
    import os, sys
    from algocapture.launch import Unit
    from algocapture.launch.ray import Ray
    argv = (sys.executable, "-c", "import os, sys, time; from algocapture.launch import connect\\n"
            "connect()({'event': 'pid', 'pid': os.getpid()}); time.sleep(600)")
    def watch(name, event):
        if event["event"] == "pid":
            print(event["pid"], flush=True)
    Ray().run([Unit("u", None, argv)], watch)
"""


@pytest.mark.slow
def test_nothing_outlives_a_killed_driver() -> None:
    before = set(raylets())
    driver = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(DRIVER)], stdout=subprocess.PIPE, cwd=ROOT
    )
    with driver:
        assert driver.stdout is not None
        worker = Path("/proc", driver.stdout.readline().decode().strip())
        assert worker.exists()
        driver.kill()
    deadline = time.monotonic() + 30
    while worker.exists() and (worker / "stat").read_text().split()[2] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert gone(set(raylets()) - before, 60)


@pytest.mark.slow
def test_a_lost_ray_worker_is_replaced(tmp_path: Path) -> None:
    """The first try kills the Ray worker above it."""
    body = f"""
        emit = connect()
        if not os.path.exists({str(tmp_path / "second")!r}):
            open({str(tmp_path / "second")!r}, "w").close()
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
    """
    events: list[dict[str, Any]] = []
    (outcome,) = Ray().run([command("u", body)], lambda name, event: events.append(event))
    assert outcome == Outcome("u", DONE, 2)
    assert [e["state"] for e in events if e["event"] == "unit"] == ["started", "retried", "ended"]


@pytest.mark.slow
def test_a_cluster_of_the_user_is_used_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        assert Ray().run([command("u", "")])[0].code == DONE
        assert ray.is_initialized()
    finally:
        ray.shutdown()
