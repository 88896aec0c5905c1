"""What launching costs: 200 units of one second on two cores, and 10,000 trivial units.

    python -m benchmarks.launchers overhead [NAME]   seconds with processes and ray, and their ratio
    python -m benchmarks.launchers memory            the driver's memory against the number of units

The time of `ray` includes the start of a local cluster; the ideal is units x seconds / cores.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Iterator

from algocapture.launch import DONE, Launcher, Outcome, Processes, Unit

BUSY = "import time\nend = time.monotonic() + {}\nwhile time.monotonic() < end: pass"
CHILD = "import sys; from benchmarks.launchers import peak; peak(sys.argv[1], int(sys.argv[2]))"


def launcher(name: str) -> Launcher:
    if name == "processes":
        return Processes(2)
    from algocapture.launch.ray import Ray  # starts without it

    return Ray()


def units(number: int, command: tuple[str, ...]) -> Iterator[Unit]:
    return (Unit(f"unit-{i:05d}", lambda emit: DONE, command) for i in range(number))


def check(outcomes: list[Outcome]) -> None:
    failed = [outcome for outcome in outcomes if outcome.code != DONE]
    assert not failed, f"{len(failed)} units failed, the first: {failed[0]}"


def overhead(name: str, number: int, seconds: float = 1.0) -> float:
    """Seconds for so many units that keep a core busy, start and end included."""
    command = (sys.executable, "-c", BUSY.format(seconds))
    begun = time.monotonic()
    outcomes = launcher(name).run(units(number, command))
    took = time.monotonic() - begun
    check(outcomes)
    ideal = number * seconds / 2
    print(f"{name:10} {took:7.1f} s for {number} units of {seconds:g} s, ideal {ideal:.0f} s")
    return took


def memory(counts: tuple[int, ...]) -> None:
    for name in ("processes", "ray"):
        for count in counts:
            subprocess.run([sys.executable, "-c", CHILD, name, str(count)], check=True)


def peak(name: str, count: int) -> None:
    """In a process of its own: peak resident memory after `count` units that do nothing."""
    begun = time.monotonic()
    outcomes = launcher(name).run(units(count, ("true",)))
    check(outcomes)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name:10} {count:6} units: peak {most:6.1f} MB, {time.monotonic() - begun:6.1f} s")


if __name__ == "__main__":
    what, *rest = sys.argv[1:] or ["overhead"]
    if what == "memory":
        memory((100, 1000, 10_000))
    elif rest:
        overhead(rest[0], 200)
    else:
        print(f"ray / processes = {1 / (overhead('processes', 200) / overhead('ray', 200)):.3f}")
