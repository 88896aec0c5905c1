"""From a study and a folder to its measured parts, each one immutable file, and their tables."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from algocapture.config import from_json
from algocapture.experiment.driver import Recipe, UnitsFailed, argv, write_meta
from algocapture.experiment.unit import require_device, threads
from algocapture.launch import DONE, INTERRUPTED, Emit, Launcher, Stop, Unit
from algocapture.launch.base import Watch
from algocapture.report.findings import write_findings
from algocapture.stats.findings import Findings
from algocapture.store import RunFolder, StoreError
from algocapture.studies.base import Study


def conduct(
    study: Study,
    out: Path | str,
    launcher: Launcher,
    *,
    recipe: Recipe | None = None,
    watch: Watch = lambda name, event: None,
    notify: Callable[[str], None] | None = None,
    time_limit: float | None = None,
) -> bool:
    """Begin or continue the study in `out`; True when every part is measured.

    A part that is there is never measured again. Another configuration is refused with the
    difference. At the end result.json is written, and the tables and figures made of it.
    """
    if launcher.here:
        require_device(study.device)
    kwargs: dict[str, Any] = {} if notify is None else {"notify": notify}
    digest = None if recipe is None else recipe.digest
    extension = {"parts": list(study.parts())}
    with (
        Stop(time_limit) as stop,
        RunFolder.enter(out, study.identity(), extension, recipe=digest, **kwargs) as run,
    ):
        begun = time.time()
        names = study.parts()
        units = [
            Unit(
                name=name,
                call=partial(_call, run, study, name),
                argv=argv(run, names.index(name), recipe),
                threads=study.threads,
            )
            for name in unmeasured(run, study)
        ]
        outcomes = launcher.run(units, watch, stop)
        complete = not unmeasured(run, study)
        write_meta(run, study, begun, outcomes)
        if complete:
            run.write_result()
            write_page(run, study)
    if failed := [o for o in outcomes if o.code not in (DONE, INTERRUPTED)]:
        raise UnitsFailed(failed)
    return complete


def unmeasured(run: RunFolder, study: Study) -> list[str]:
    """The parts that are not there, or damaged."""
    left = []
    for name in study.parts():
        try:
            if name not in run.parts():
                left.append(name)
            else:
                run.part(name)
        except StoreError as error:
            run.notify(str(error))
            left.append(name)
    return left


def measure_part(run: RunFolder, study: Study, name: str, emit: Emit = lambda event: None) -> int:
    """Measure one part and keep it; the exit code. A part is whole or not there."""
    begun = time.monotonic()
    with threads(study.threads):
        rows = study.measure(name)
    run.write_part(name, rows)
    emit({"event": "part", "rows": len(rows), "seconds": round(time.monotonic() - begun, 1)})
    return DONE


def rows_of(run: RunFolder, study: Study) -> dict[str, list[dict[str, Any]]]:
    """The measured rows in the order of the parts."""
    return {name: run.part(name) for name in study.parts()}


def findings_of(run: RunFolder, study: Study) -> Findings:
    """What the parts in the folder say."""
    with _as_measured(run, study):
        return study.findings(rows_of(run, study))


def write_page(run: RunFolder, study: Study) -> list[Path]:
    """Tables, figures and page of the parts in the folder; the files written."""
    findings = findings_of(run, study)
    with _as_measured(run, study):
        return write_findings(findings, run.path)


@contextmanager
def _as_measured(run: RunFolder, study: Study) -> Iterator[None]:
    """A study computes with its rows as it measured them; what lies in a folder may be none of its
    rows, and each study would notice somewhere else."""
    try:
        yield
    except StoreError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        raise StoreError(
            f"the parts in {run.path} are none that {type(study).__name__} measures: "
            f"{type(error).__name__}: {error} ({Path(at.filename).name}:{at.lineno})"
        ) from error


def stored_study(run: RunFolder) -> Study:
    """The study that a run's configuration describes."""
    held = from_json(run.identity)
    if not isinstance(held, Study):
        raise StoreError(f"{run.path} is a run of {type(held).__name__}, not of a Study")
    return held


def _call(run: RunFolder, study: Study, name: str, emit: Emit) -> int:
    return measure_part(run, study, name, emit)
