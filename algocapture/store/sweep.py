"""A sweep's folder: runs side by side, and how far whoever drives them has come.

    NAME/            the run of that name, as in run.py
    progress.json    counts and times for `status`: it decides nothing and may be old
    report.html      the page that compares the runs

A folder into which runs were put by hand is a sweep too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import algocapture.store.files as files
import algocapture.store.records as records
from algocapture.store.contents import wrong_progress
from algocapture.store.files import StoreError
from algocapture.store.lock import Lock, holder_of
from algocapture.store.stages import CONFIG, Body, Notify

PROGRESS = "progress"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=-]{0,99}")
_OURS = {f"{PROGRESS}.json", "report.html"}


def check_name(name: str) -> str:
    """A run's name in a sweep is one folder's name, never a path."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _OURS:
        raise StoreError(
            f"a run's name in a sweep is letters, digits and any of . _ = -, beginning with a "
            f"letter or digit, 100 at most, got {name!r}"
        )
    return name


def sweep_runs(path: Path) -> list[str]:
    """The names of the runs in a sweep's folder, sorted; [] if it is itself a run, or neither."""
    found = files.names(path) if path.is_dir() else []
    if f"{CONFIG}.json" in found:
        return []
    return [n for n in found if _NAME.fullmatch(n) and (path / n / f"{CONFIG}.json").is_file()]


@contextmanager
def hold_sweep(path: Path, notify: Notify) -> Iterator[None]:
    """Drive the sweep in `path`, alone. Only a new folder or a sweep's is entered."""
    found = [name for name in files.names(path) if not name.startswith(".lock-")]
    foreign = [name for name in found if name not in _OURS and not (path / name).is_dir()]
    if foreign:
        raise StoreError(
            f"{path} is no folder of a sweep (it holds {foreign[0]!r}): use a new folder"
        )
    files.make_folder(path)
    with Lock(path, notify=notify):
        files.clean(path)
        yield


def driver_of(path: Path) -> str | None:
    """Who drives the sweep now, as far as one look tells."""
    return holder_of(path)


def write_progress(path: Path, body: Body) -> None:
    data = records.encode_record(body, place=PROGRESS, run="sweep")
    files.write_atomic(path / f"{PROGRESS}.json", data, durable=False)


def read_progress(path: Path) -> Body | None:
    """None if there is none, or none that can be read: it is written anew by the next driver."""
    try:
        body = records.read_record(path / f"{PROGRESS}.json", place=PROGRESS, run="sweep")
    except StoreError:
        return None
    return None if wrong_progress(body) else body
