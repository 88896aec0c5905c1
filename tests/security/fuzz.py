"""Fuzz for minutes: `python -m tests.security.fuzz --seconds 300`, `--what study`, `--what store`.
Each complaint is printed once with the seed that shows it; `--seed N --one` shows it again."""

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
from tests.security.hostile_places import (
    STUDIES,
    STUDY_VERBS,
    complaints_of_store,
    forge_store,
    good_store,
    good_study,
)


def good_run(folder: Path) -> Path:
    """A finished run with everything that a folder can hold."""
    drive(tiny(), folder, Inline())
    run = RunFolder(folder)
    run.write_note("eval-largest", evaluate(run, tiny(), [4], 8))
    return folder


def fuzz(
    root: Path, first: int, seconds: float, one: bool = False, what: str = "run"
) -> dict[str, int]:
    """Complaint -> the seed that shows it."""
    good, found = GOOD[what](root), dict[str, int]()
    end, seed = time.monotonic() + seconds, first
    while time.monotonic() < end and not (one and seed > first):
        draw = random.Random(seed)
        forged = copy_of(draw.choice(good), root / "forged")
        for wrong in COMPLAINTS[what](forged, draw):
            if found.setdefault(wrong, seed) == seed:
                log(f"{seed}: {wrong}")
        seed += 1
    log(f"{seed - first} folders, {len(found)} complaints")
    return found


def complaints_of(folder: Path, draw: random.Random) -> list[str]:
    """Forge one file of a folder and read it: with the quick verbs and a slow one."""
    return complaints(folder, [*VERBS[:4], draw.choice(VERBS[4:])]) if forge(folder, draw) else []


GOOD = {
    "run": lambda root: [good_run(root / "good")],
    "study": lambda root: [good_study(root / name, name) for name in STUDIES],
    "store": lambda root: [good_store(root / "good")],
}
COMPLAINTS = {
    "run": complaints_of,
    "study": lambda folder, draw: complaints(folder, STUDY_VERBS) if forge(folder, draw) else [],
    "store": lambda at, draw: complaints_of_store(at) if forge_store(at, draw) else [],
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--one", action="store_true")
    parser.add_argument("--what", choices=COMPLAINTS, default="run")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as root:
        fuzz(Path(root), given.seed, given.seconds, given.one, given.what)


if __name__ == "__main__":
    main()
