"""Units as Ray tasks with declared resources, on a cluster or on this machine alone.

A task runs its unit's command as `Processes` does, in a process of its own on the node that Ray
chose. Ray runs a task again when its node or worker is lost, so a unit may run twice: units are
idempotent, and a folder's lock admits one worker at a time. Nothing is kept in Ray's memory: when
the driver or the head dies, whoever starts the run again continues from the checkpoints.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from algocapture.launch.base import (
    DONE,
    FAILED,
    INTERRUPTED,
    USAGE,
    Event,
    Launcher,
    Outcome,
    Unit,
    Watch,
    turn,
)
from algocapture.launch.cluster import Need, fits, knock, refusal, signals_kept
from algocapture.launch.processes import Processes
from algocapture.launch.stamp import Stamp, discrepancy, stamp

# Read when ray is imported: without it `uv run` would be repeated in every worker.
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

POLL = 0.2  # seconds between two looks at stop() and at the events
POST = 1.0  # seconds between two messages of a running task
SURVEY = 10.0  # seconds between two counts of the nodes
PATIENCE = 60.0  # seconds without a node that could run a unit, before it is given up
LOSSES = 3  # lost nodes or workers that a unit survives
MOST_EVENTS = 10_000  # held for a driver that does not ask; display only
STORE = 80 * 2**20  # bytes of Ray's object store, which units do not use


@dataclass(frozen=True)
class Ray(Launcher):
    """`address`: of a running cluster, or "auto"; None: a cluster of this machine, for this run.

    `cpus=None`: as many as the unit has threads. `memory` in bytes; 0: not declared.
    """

    here: ClassVar[bool] = False

    address: str | None = None
    cpus: float | None = None
    gpus: float = 0.0
    memory: float = 0.0
    grace: float = 60.0  # seconds a unit has to checkpoint before it is killed

    def __post_init__(self) -> None:
        for name in ("cpus", "gpus", "memory"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} = {value!r}: expected a finite number >= 0")
        if self.gpus > 1 and self.gpus != int(self.gpus):
            raise ValueError(f"gpus = {self.gpus!r}: expected a fraction of one GPU, or whole GPUs")
        if self.address is not None and "://" in self.address:
            raise ValueError(
                f"address = {self.address!r}: start the run on a node of the cluster, with "
                "'auto' or HOST:PORT; ray:// clients are not supported"
            )

    def run(
        self,
        units: Iterable[Unit],
        watch: Watch = lambda name, event: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> list[Outcome]:
        with _connected(self.address):
            if self.address is not None:
                _compare(stamp())
            pool = _Pool(self, iter(enumerate(units)), watch)
            pool.finish(stop)
        return [pool.outcomes[place] for place in sorted(pool.outcomes)]

    def need(self, unit: Unit) -> Need:
        """What a node must have free for a unit, in Ray's names."""
        cpus = float(unit.threads) if self.cpus is None else self.cpus
        need = {"CPU": cpus, "GPU": self.gpus, "memory": self.memory}
        return {name: value for name, value in need.items() if value > 0}


# --- on a worker


class _Mailbox:
    """An actor between tasks and driver: events one way, the wish to stop the other."""

    def __init__(self) -> None:
        self.events: deque[tuple[str, Event]] = deque(maxlen=MOST_EVENTS)
        self.stopped = False

    def post(self, name: str, events: list[Event]) -> bool:
        self.events.extend((name, event) for event in events)
        return self.stopped

    def take(self) -> list[tuple[str, Event]]:
        taken = list(self.events)
        self.events.clear()
        return taken

    def stop(self) -> None:
        self.stopped = True


@dataclass(frozen=True)
class _Order:
    """A unit as it is sent to a node."""

    name: str
    argv: tuple[str, ...]
    threads: int
    grace: float
    python: str  # the driver's: a node has its own
    stamp: Stamp  # the driver's


def _work(order: _Order, box: Any) -> tuple[Outcome, list[Event]]:
    """Run a unit's command here; its outcome, and the events that were not posted yet."""
    where = f"{socket.gethostname()}, {sys.executable}"
    if lines := discrepancy(order.stamp, stamp()):
        return Outcome(order.name, USAGE, 0, f"{where}: another installation: {lines}"), []
    line = _Line(order.name, box, [turn("started")])
    if line.asked() or line.answered(PATIENCE):
        return Outcome(order.name, INTERRUPTED, 0), []
    program = sys.executable if order.argv[0] == order.python else order.argv[0]
    unit = Unit(order.name, lambda emit: DONE, (program, *order.argv[1:]), order.threads)
    launcher = Processes(order.threads, order.grace)
    (outcome,) = launcher.run([unit], line.watch, line.asked)
    log = f"on {where}:\n{outcome.log}" if outcome.log else ""
    return replace(outcome, log=log), line.events


def _stamped() -> Stamp:
    return stamp()


@dataclass
class _Line:
    """A task's side of the mailbox: a message a second, not one for each event.

    Answers come as futures: a task that waits in `ray.get` lends its CPUs to another one.
    """

    name: str
    box: Any
    events: list[Event] = field(default_factory=list)
    stopped: bool = False
    last: float = -math.inf
    answer: Future[bool] | None = None

    def watch(self, name: str, event: Event) -> None:
        if event.get("event") != "unit" or event["state"] == "retried":
            self.events.append(event)

    def asked(self) -> bool:
        """Is the unit to end? Asked often; the mailbox is asked once a second."""
        if self.answer is not None and self.answer.done():
            self.answered(0)
        if not self.stopped and self.answer is None and time.monotonic() - self.last > POST:
            sent, self.events = self.events, []
            self.answer = self.box.post.remote(self.name, sent).future()
            self.last = time.monotonic()
        return self.stopped

    def answered(self, seconds: float) -> bool:
        """Wait for what the mailbox says."""
        assert self.answer is not None, "nothing was asked"
        with contextlib.suppress(ray.exceptions.RayError, TimeoutError):  # the driver may be gone
            self.stopped = self.answer.result(seconds)
        self.answer = None
        return self.stopped


# --- on the driver


@contextlib.contextmanager
def _connected(address: str | None) -> Iterator[None]:
    """A connection for the time of a run, or the one that this process has already."""
    if ray.is_initialized():
        yield
        return
    with signals_kept():
        try:
            knock(address)
            ray.init(**_options(address))
        except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            first = str(error).strip().partition("\n")[0]
            raise ValueError(
                f"address = {address!r}: no Ray cluster answers: {first} (if it asks for a token: "
                "RAY_AUTH_MODE=token and its RAY_AUTH_TOKEN must be set here too)"
                if address is not None
                else f"a local Ray cluster does not start: {first}"
            ) from error
    try:
        yield
    finally:
        with signals_kept():
            ray.shutdown()


def _options(address: str | None) -> dict[str, Any]:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": True}
    if address is not None:
        return {"address": address} | quiet
    cores = len(os.sched_getaffinity(0))
    local = {"address": "local", "num_cpus": cores, "include_dashboard": False}
    return local | {"object_store_memory": STORE} | quiet


def _nodes() -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]


def _compare(mine: Stamp) -> None:
    """Refuse a cluster whose nodes have another installation, before anything begins."""
    ask: Any = ray.remote(_stamped)
    asked = {}
    for node in _nodes():
        there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        reference = ask.options(num_cpus=0, max_retries=1, scheduling_strategy=there).remote()
        asked[reference] = node["NodeManagerAddress"]
    for reference, where in asked.items():
        try:
            lines = discrepancy(mine, ray.get(reference, timeout=PATIENCE))
        except ray.exceptions.RayTaskError as error:
            raise ValueError(f"node {where} cannot import algocapture: {error.cause}") from error
        except ray.exceptions.RayError:
            continue  # a node that is gone or busy: its tasks compare again
        if lines:
            raise ValueError(f"node {where} has another installation: {lines}; install the same")


@dataclass
class _Pool:
    """The tasks in flight. Only as many are submitted as the cluster could run, twice over."""

    launcher: Ray
    units: Iterator[tuple[int, Unit]]
    watch: Watch
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    flight: dict[Any, tuple[int, Unit]] = field(default_factory=dict)
    begun: dict[str, int] = field(default_factory=dict)  # starts of units in flight
    next: tuple[int, Unit] | None = None
    deadline: float | None = None  # set once interrupted
    seen: float = -math.inf  # when the nodes were counted
    able: float = math.inf  # when a node was last seen that could run what is in flight
    relayed: float = 0.0

    def __post_init__(self) -> None:
        self.task: Any = ray.remote(_work)
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
        self.box: Any = ray.remote(_Mailbox).options(num_cpus=0, scheduling_strategy=here).remote()
        self.nodes: list[dict[str, float]] = []

    def finish(self, stop: Callable[[], bool]) -> None:
        try:
            while self.busy():
                if stop():
                    self.interrupt()
                self.submit()
                self.wait()
        finally:
            self.kill()

    def busy(self) -> bool:
        if self.next is None:
            self.next = next(self.units, None)
        return bool(self.flight or self.next)

    def submit(self) -> None:
        """Hand over units as long as the cluster has use for them."""
        self._survey()
        while self.next is not None:
            place, unit = self.next
            need = self.launcher.need(unit)
            slots = sum(fits(node, need) for node in self.nodes)
            if self.deadline is not None:
                self.outcomes[place] = Outcome(unit.name, INTERRUPTED, 0)
            elif not slots:
                self._refuse(place, unit, need)
            elif len(self.flight) < 2 * slots + 2:
                self._submit(place, unit, need)
            else:
                return
            self.next = next(self.units, None)

    def _submit(self, place: int, unit: Unit, need: Need) -> None:
        task = self.task.options(
            num_cpus=need.get("CPU", 0),
            num_gpus=need.get("GPU", 0),
            memory=need.get("memory"),
            max_retries=LOSSES,
            enable_task_events=False,
        )
        order = _Order(
            unit.name, unit.argv, unit.threads, self.launcher.grace, sys.executable, stamp()
        )
        self.flight[task.remote(order, self.box)] = (place, unit)

    def _refuse(self, place: int, unit: Unit, need: Need) -> None:
        """Ray would wait for such a node for ever, without a word."""
        log = refusal(unit.name, need, self.nodes)
        if not self.outcomes and not self.flight:
            raise ValueError(log)
        self._end(place, Outcome(unit.name, USAGE, 0, log))

    def _survey(self) -> None:
        if time.monotonic() - self.seen < SURVEY:
            return
        self.seen = now = time.monotonic()
        self.nodes = [node["Resources"] for node in _nodes()]
        needs = [self.launcher.need(unit) for _, unit in self.flight.values()]
        if not needs or any(fits(node, need) for node in self.nodes for need in needs):
            self.able = now
        elif now - self.able > PATIENCE:
            for reference in list(self.flight):
                ray.cancel(reference, force=True)

    def wait(self) -> None:
        if not self.flight:
            return
        ready, rest = ray.wait(list(self.flight), num_returns=1, timeout=POLL)
        if ready and rest:
            ready += ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        self._relay(bool(ready))
        for reference in ready:
            self._ended(reference)
        if self.deadline is not None and time.monotonic() > self.deadline:
            self.kill()

    def _relay(self, at_once: bool) -> None:
        if not at_once and time.monotonic() - self.relayed < POLL:
            return
        self.relayed = time.monotonic()
        with contextlib.suppress(ray.exceptions.RayError):
            for name, event in ray.get(self.box.take.remote(), timeout=PATIENCE):
                self._show(name, event)

    def _show(self, name: str, event: Event) -> None:
        if event.get("event") == "unit" and event["state"] == "started":
            self.begun[name] = self.begun.get(name, 0) + 1
            if self.begun[name] > 1:
                event = turn("retried", FAILED, "its node or Ray worker was lost")
        self.watch(name, event)

    def _ended(self, reference: Any) -> None:
        place, unit = self.flight.pop(reference)
        try:
            outcome, events = ray.get(reference)
        except ray.exceptions.RayError as error:
            outcome, events = Outcome(unit.name, FAILED, 1, _why(error)), []
            if self.deadline is not None:
                outcome = replace(outcome, code=INTERRUPTED)
        for event in events:
            self._show(unit.name, event)
        lost = max(0, self.begun.pop(unit.name, 0) - 1)
        self._end(place, replace(outcome, tries=outcome.tries + lost))

    def _end(self, place: int, outcome: Outcome) -> None:
        self.watch(outcome.name, turn("ended", outcome.code, outcome.log))
        self.outcomes[place] = outcome

    def interrupt(self) -> None:
        """Ask the tasks, once, to checkpoint and end."""
        if self.deadline is None:
            self.deadline = time.monotonic() + self.launcher.grace + 2 * POST
            self.box.stop.remote()

    def kill(self) -> None:
        for reference in self.flight:
            with contextlib.suppress(ray.exceptions.RayError):
                ray.cancel(reference, force=True)


def _why(error: Exception) -> str:
    if isinstance(error, ray.exceptions.TaskCancelledError):
        return "given up: no living node could run it, or it did not end when asked"
    return f"{type(error).__name__}: {error}"
