"""Fuzz for minutes: `python -m tests.security.fuzz --seconds 300`. Each complaint is printed once
with the seed that shows it; `--seed N --one` shows it again."""

from __future__ import annotations

import argparse
import random
import tempfile
import time
import warnings
from pathlib import Path

from algocapture.experiment import drive, evaluate
from algocapture.launch import Inline
from algocapture.store import RunFolder
from tests.experiment.tiny import tiny
from tests.security.hostile import VERBS, complaints, copy_of, forge, log


def good_run(folder: Path) -> Path:
    """A finished run with everything that a folder can hold."""
    drive(tiny(), folder, Inline())
    run = RunFolder(folder)
    run.write_note("eval-largest", evaluate(run, tiny(), [4], 8))
    return folder


def fuzz(root: Path, first: int, seconds: float, one: bool = False) -> dict[str, int]:
    """Complaint -> the seed that shows it."""
    good, found = good_run(root / "good"), dict[str, int]()
    end, seed = time.monotonic() + seconds, first
    while time.monotonic() < end and not (one and seed > first):
        for wrong in complaints_of(copy_of(good, root / "forged"), random.Random(seed)):
            if found.setdefault(wrong, seed) == seed:
                log(f"{seed}: {wrong}")
        seed += 1
    log(f"{seed - first} folders, {len(found)} complaints")
    return found


def complaints_of(folder: Path, draw: random.Random) -> list[str]:
    """Forge one file of a folder and read it: with the quick verbs and a slow one."""
    return complaints(folder, [*VERBS[:4], draw.choice(VERBS[4:])]) if forge(folder, draw) else []


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--one", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as root:
        fuzz(Path(root), given.seed, given.seconds, given.one)


if __name__ == "__main__":
    main()
