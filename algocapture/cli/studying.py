"""What `run` and `resume` do with a study: its parts as units, its tables at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from algocapture.cli.launching import Asked
from algocapture.cli.output import Plain, print_json
from algocapture.cli.text import echo
from algocapture.config import ConfigError, digest
from algocapture.experiment import Recipe, UnitsFailed, conduct, stored_study
from algocapture.experiment.measuring import findings_of, write_page
from algocapture.launch import DONE, FAILED, INTERRUPTED
from algocapture.report.findings import SUMMARY
from algocapture.store import RunFolder, StoreError
from algocapture.studies import Study


def go_study(
    study: Study,
    out: Path,
    recipe: Recipe | None,
    asked: Asked,
    time_limit: float | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Measure, say what was found; the exit code."""
    if asked.publish is not None:
        raise ConfigError(
            f"--publish {asked.publish}: a study's parts are kept in its folder alone"
        )
    # Parts measure time: one after the other, unless asked.
    launcher = asked.choose(len(study.parts()), {study.device}, several="inline")
    console = Plain(stderr=True)

    def note(line: str) -> None:
        if not quiet:
            console.print(line, markup=False, soft_wrap=True)

    def watch(part: str, event: dict[str, Any]) -> None:
        if event["event"] == "part":
            note(f"{part}: {event['rows']} rows in {event['seconds']} s")
        elif event.get("state") == "retried":
            note(f"{part} died with exit code {event['code']} and is tried again")

    try:
        complete = conduct(
            study, out, launcher, recipe=recipe, watch=watch, notify=note, time_limit=time_limit,
        )  # fmt: skip
    except UnitsFailed as error:
        echo(f"Error: {error}", err=True)
        return FAILED
    if not complete:
        echo(f"Stopped; the measured parts are kept. Repeat the command for {out}", err=True)
        return INTERRUPTED
    conclude_study(study, RunFolder(out), as_json)
    return DONE


def conclude_study(study: Study, run: RunFolder, as_json: bool) -> None:
    """The exponents beside the theory, and where the rest is."""
    findings = findings_of(run, study)
    if as_json:
        print_json({"title": findings.title, "tables": findings.all_tables()})
        return
    for e in findings.exponents:
        judged = {None: "", True: "; met", False: "; NOT met"}[e.met]
        theory = f" ({e.theory})" if e.theory else ""
        echo(f"{e.what}: {e.value:.3f} [{e.low:.3f}, {e.high:.3f}]{theory}{judged}")
    for line in findings.notes:
        echo(line)
    echo(f"page: {run.path / SUMMARY}")


def redraw(run: RunFolder, as_json: bool = False) -> None:
    """Make the tables, figures and page of a folder again, of the parts that it holds."""
    study = stored_study(run)
    if missing := [name for name in study.parts() if name not in run.parts()]:
        raise StoreError(f"{run.path} is not finished: {missing[0]} is not measured; resume it")
    written = write_page(run, study)
    if as_json:
        print_json({"page": str(run.path / SUMMARY), "files": [str(file) for file in written]})
    else:
        echo(f"{len(written)} files in {run.path}")


def plan_study(study: Study, folder: Path, as_json: bool) -> None:
    """What `--dry-run` prints."""
    plan = {
        "folder": str(folder),
        "identity": digest(study.identity())[:16],
        "study": study.identity(),
        "parts": list(study.parts()),
        "threads": study.threads,
    }
    if as_json:
        print_json([plan])
        return
    for key, value in plan.items():
        echo(f"{key:9} {value}")
