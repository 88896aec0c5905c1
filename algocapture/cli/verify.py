"""`algocapture verify`: is every file of a run what was written?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from algocapture.cli.output import print_json
from algocapture.cli.text import echo
from algocapture.store import Verified
from algocapture.store import verify as check
from algocapture.store.sweep import sweep_runs


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def verify(folder: Path, as_json: bool) -> int:
    """Check all hashes of the run in FOLDER and rebuild its result from its stages.

    Of a sweep: those of each of its runs.
    """
    names = sweep_runs(folder)
    if not names:
        found = check(folder)
        _print(found, as_json)
        return 0 if found.ok else 1
    whole = {name: check(folder / name) for name in names}
    if as_json:
        print_json({name: to_json(found) for name, found in whole.items()})
    else:
        for name, found in whole.items():
            _print(found, False, f"{name}: ")
    return 0 if all(found.ok for found in whole.values()) else 1


def to_json(found: Verified) -> dict[str, Any]:
    return asdict(found) | {"ok": found.ok}


def _print(found: Verified, as_json: bool, within: str = "") -> None:
    if as_json:
        print_json(to_json(found))
        return
    for problem in found.problems:
        echo(f"{within}{problem.path}: {problem.message}")
    state = "all whole" if found.ok else f"{len(found.problems)} problems"
    echo(
        f"{within}{found.files} files whole, {found.stages} stages; result: {found.result}; {state}"
    )
