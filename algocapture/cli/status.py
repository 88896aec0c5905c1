"""`algocapture status`: how far a run is."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from algocapture.cli.output import print_json
from algocapture.cli.text import echo
from algocapture.store import RunFolder
from algocapture.store.sweep import driver_of, read_progress, sweep_runs

END_OF_CALENDARS = 2**37  # seconds: the year 6325
COUNTS = ("units", "done", "running", "failed")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def status(folder: Path, as_json: bool) -> None:
    """Say which stages of the run in FOLDER are decided, and who works on it.

    Of a sweep: units done, running and failed, and when it ends at the present pace.
    """
    if sweep_runs(folder):
        _sweep(folder, as_json)
        return
    run = RunFolder(folder)
    if run.is_study:
        _study(run, as_json)
        return
    seeds = [_seed(run, seed) for seed in range(run.extension.get("seeds", 0))]
    finished = _finished(run, {})
    workers = run.workers()
    if as_json:
        body = {"folder": str(folder), "finished": finished, "seeds": seeds}
        print_json(body | {"workers": {str(unit): who for unit, who in workers.items()}})
        return
    echo(f"{folder}: {'finished' if finished else 'not finished'}")
    for seed in seeds:
        if seed["stages"]:
            echo(
                f"  seed {seed['seed']}: {seed['stages']} stages, T = {seed['size']} "
                f"{seed['outcome']}, P = {seed['spent']:,}"
            )
        else:
            echo(f"  seed {seed['seed']}: no stage decided")
    for unit, who in workers.items():
        echo(f"  unit {unit} is being worked on by {who}")


def _study(run: RunFolder, as_json: bool) -> None:
    measured, parts = run.parts(), run.extension["parts"]
    if as_json:
        finished = run.read_result() is not None
        print_json({"folder": str(run.path), "finished": finished, "parts": parts}
                   | {"measured": measured})  # fmt: skip
        return
    echo(f"{run.path}: {len(measured)} of {len(parts)} parts are measured")
    for name in parts:
        echo(f"  {name}: {'measured' if name in measured else 'not measured'}")


def _sweep(folder: Path, as_json: bool) -> None:
    driver, held = driver_of(folder), read_progress(folder) or {}
    runs = {name: dict(held.get("runs", {}).get(name, {})) for name in sweep_runs(folder)}
    for name, row in runs.items():
        row["finished"] = _finished(RunFolder(folder / name), row)
    total = {k: sum(row.get(k, 0) for row in runs.values()) for k in COUNTS}
    if driver is None:
        total["running"] = 0
    body = {"folder": str(folder), "driver": driver, **total, "runs": runs} | {
        k: held.get(k) for k in ("share", "seconds_left", "written", "failures")
    }
    if as_json:
        print_json(body)
        return
    finished = sum(row["finished"] for row in runs.values())
    echo(f"{folder}: {finished} of {len(runs)} runs are finished")
    if held:
        echo("  " + _counts(total) + _projected(body))
    if driver is None and finished < len(runs):
        echo(f"  nobody works on it: `algocapture resume {folder}` continues")
    for name, row in runs.items():
        counts = "" if "units" not in row else f" ({_counts(row)})"
        echo(f"  {name}: {'finished' if row['finished'] else f'not finished{counts}'}")
    for one in held.get("failures", []):
        echo(f"  failed: {one['unit']}: {one['last']}")


def _finished(run: RunFolder, counted: dict[str, Any]) -> bool:
    """Is the result there, and of all stages? Reading these is spared where the driver counted."""
    result = run.read_result()
    if result is None:
        return False
    known = counted.get("done") is not None and counted["done"] == counted["units"]
    return known or result == run.result()


def _counts(row: dict[str, Any]) -> str:
    return (
        f"{row['done']} of {row['units']} units done, {row['running']} running, "
        f"{row['failed']} failed"
    )


def _projected(body: dict[str, Any]) -> str:
    share = f"; {body['share']:.0%} of the work"
    if body["driver"] is None or body["seconds_left"] is None:
        return share
    seconds = body["written"] + body["seconds_left"]
    if not 0 <= seconds < END_OF_CALENDARS:
        return share
    end = time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
    return f"{share}; at this pace it ends about {end}"


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
