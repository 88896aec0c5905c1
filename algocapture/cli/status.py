"""`algocapture status`: how far a run is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from algocapture.cli.output import print_json
from algocapture.store import RunFolder


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def status(folder: Path, as_json: bool) -> None:
    """Say which stages of the run in FOLDER are decided, and who works on it."""
    run = RunFolder(folder)
    if run.is_study:
        _study(run, as_json)
        return
    seeds = [_seed(run, seed) for seed in range(run.extension["seeds"])]
    finished = run.read_result() is not None and run.read_result() == run.result()
    workers = run.workers()
    if as_json:
        body = {"folder": str(folder), "finished": finished, "seeds": seeds}
        print_json(body | {"workers": {str(unit): who for unit, who in workers.items()}})
        return
    click.echo(f"{folder}: {'finished' if finished else 'not finished'}")
    for seed in seeds:
        if seed["stages"]:
            click.echo(
                f"  seed {seed['seed']}: {seed['stages']} stages, T = {seed['size']} "
                f"{seed['outcome']}, P = {seed['spent']:,}"
            )
        else:
            click.echo(f"  seed {seed['seed']}: no stage decided")
    for unit, who in workers.items():
        click.echo(f"  unit {unit} is being worked on by {who}")


def _study(run: RunFolder, as_json: bool) -> None:
    measured, parts = run.parts(), run.extension["parts"]
    if as_json:
        finished = run.read_result() is not None
        print_json({"folder": str(run.path), "finished": finished, "parts": parts}
                   | {"measured": measured})  # fmt: skip
        return
    click.echo(f"{run.path}: {len(measured)} of {len(parts)} parts are measured")
    for name in parts:
        click.echo(f"  {name}: {'measured' if name in measured else 'not measured'}")


def _seed(run: RunFolder, seed: int) -> dict[str, Any]:
    stages = run.stages(seed)
    last = stages[-1] if stages else {}
    return {
        "seed": seed,
        "stages": len(stages),
        "size": last.get("size"),
        "outcome": last.get("outcome"),
        "spent": last.get("spent"),
    }
