"""`algocapture verify`: is every file of a run what was written?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from algocapture.cli.output import print_json
from algocapture.store import verify as check


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def verify(folder: Path, as_json: bool) -> int:
    """Check all hashes of the run in FOLDER and rebuild its result from its stages."""
    found = check(folder)
    if as_json:
        print_json(asdict(found) | {"ok": found.ok})
    else:
        for problem in found.problems:
            click.echo(f"{problem.path}: {problem.message}")
        state = "all whole" if found.ok else f"{len(found.problems)} problems"
        click.echo(
            f"{found.files} files whole, {found.stages} stages; result: {found.result}; {state}"
        )
    return 0 if found.ok else 1
