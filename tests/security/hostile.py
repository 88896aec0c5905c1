"""Hostile results: good folders changed in their structure, with hashes that match again.

A hash is no signature: whoever writes a folder can seal it. So what is fuzzed is not only damage,
which the hashes show, but any content that a stranger could have sealed.
"""

from __future__ import annotations

import copy
import json
import random
import re
import shutil
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

from algocapture.cli import main
from algocapture.config import digest
from algocapture.store import records

SECONDS, AT_MOST = 10, 300  # of the processor, and of the clock: a verb that takes longer hangs

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 0.5, -0.5, 1e-300, 1e300, 2**31, 2**63, 10**18, 10**400,
    "", "0", "passed", "censored", "\x1b[31mred\x1b[0m\n", "\u202edeht", "\ud800", "<script>",
    "../../x", "x" * 10_000, [], {}, [[]], [None], {"type": "X"}, {"type": "Induction"}, {"a": 1},
    [1, 2, 3], {"": {"": {"": []}}},
]  # fmt: skip
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def nodes(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to everything in a JSON value."""
    yield path
    if isinstance(value, dict):
        for key, held in value.items():
            yield from nodes(held, (*path, key))
    elif isinstance(value, list):
        for index, held in enumerate(value):
            yield from nodes(held, (*path, index))


def changed(value: Any, draw: random.Random, times: int = 1) -> Any:
    """A copy with some nodes replaced, removed, doubled, renamed, nested or exchanged."""
    whole = {"": copy.deepcopy(value)}
    for _ in range(times):
        path = draw.choice([path for path in nodes(whole) if path])
        parent = whole
        for key in path[:-1]:
            parent = parent[key]
        _change(parent, path[-1], whole, draw)
    return whole.get("")


def _change(parent: Any, key: Any, whole: Any, draw: random.Random) -> None:
    match draw.randrange(8):
        case 0 if len(parent) and parent is not whole:
            del parent[key]
        case 1 if isinstance(parent, dict) and parent is not whole:
            parent[draw.choice(["type", "index", "", "\x1b]0;x\x07", key.upper()])] = parent.pop(
                key
            )
        case 2 if isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
        case 3:
            for _ in range(draw.choice([2, 40, 300])):
                parent[key] = [parent[key]] if draw.random() < 0.5 else {"a": parent[key]}
        case 4:
            other = draw.choice(list(nodes(whole)))
            held = whole
            for step in other:
                held = held[step]
            parent[key] = copy.deepcopy(held)
        case _:
            parent[key] = copy.deepcopy(draw.choice(VALUES))


def seal(path: Path, body: Any, place: str, run: str) -> bool:
    """Write a record with a good hash; False if it is not JSON that a record can hold."""
    try:
        path.write_bytes(records.encode_record(body, place=place, run=run))
    except (ValueError, RecursionError):
        return False
    return True


def forge(folder: Path, draw: random.Random) -> bool:
    """Change the content of one file of a run's folder and seal it anew."""
    chosen = draw.choice(
        sorted(p for p in folder.rglob("*") if p.suffix in (".json", ".safetensors"))
    )
    place = str(chosen.relative_to(folder).with_suffix(""))
    times = draw.choice([1, 1, 2, 5])
    if chosen.suffix == ".safetensors":
        return _forge_tensors(chosen, place, draw, times)
    envelope = json.loads(chosen.read_bytes())
    body = changed(envelope["body"], draw, times)
    if place != "config":
        return seal(chosen, body, place, envelope["run"])
    return reseal(folder, body)


def reseal(folder: Path, config: Any) -> bool:
    """Write another configuration, and all records as ones of it."""
    identity = config.get("identity") if isinstance(config, dict) else None
    try:
        run = digest(identity) if isinstance(identity, dict) else "0" * 64
    except (ValueError, RecursionError):
        return False
    if not seal(folder / "config.json", config, "config", run):
        return False
    for path in folder.rglob("*.json"):
        place = str(path.relative_to(folder).with_suffix(""))
        if place != "config":
            seal(path, json.loads(path.read_bytes())["body"], place, run)
    for path in folder.rglob("*.safetensors"):
        arrays, envelope = records.decode_tensors(path.read_bytes(), path)
        place = str(path.relative_to(folder).with_suffix(""))
        path.write_bytes(records.encode_tensors(arrays, envelope["body"], place=place, run=run))
    return True


def _forge_tensors(path: Path, place: str, draw: random.Random, times: int) -> bool:
    arrays, envelope = records.decode_tensors(path.read_bytes(), path)
    body = envelope["body"]
    if body is not None and draw.random() < 0.7:
        body = changed(body, draw, times)
    else:
        name = draw.choice(sorted(arrays))
        array = arrays.pop(name)
        match draw.randrange(5):
            case 0:
                arrays[name] = array.astype(draw.choice(["uint8", "float64", "bool", "int64"]))
            case 1:
                arrays[name] = array.reshape(-1)[:-1]
            case 2:
                arrays[name + "x"] = array
            case 3:
                arrays[name] = array.reshape((1, *array.shape))
    try:
        data = records.encode_tensors(arrays, body, place=place, run=envelope["run"])
    except (ValueError, RecursionError):
        return False
    path.write_bytes(data)
    return True


class HangError(BaseException):
    """A verb took longer than it may."""


def _hangs(number: int, frame: FrameType | None) -> None:
    raise HangError(f"longer than {SECONDS} s of the processor, or {AT_MOST} s")


@contextmanager
def limited() -> Iterator[None]:
    clocks = [(signal.SIGPROF, signal.ITIMER_PROF, SECONDS),
              (signal.SIGALRM, signal.ITIMER_REAL, AT_MOST)]  # fmt: skip
    former = {number: signal.signal(number, _hangs) for number, _, _ in clocks}
    for _, timer, seconds in clocks:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for number, timer, _ in clocks:
            signal.setitimer(timer, 0)
            signal.signal(number, former[number])


def call(*arguments: object) -> tuple[int, str, str]:
    """The command line in this process: exit code, standard output, standard error."""
    out, error = StringIO(), StringIO()
    code: object = None
    with limited(), redirect_stdout(out), redirect_stderr(error):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code
    return int(code or 0) if isinstance(code, int | None) else 99, out.getvalue(), error.getvalue()


def complaint(*arguments: object) -> str | None:
    """What is wrong with how a verb meets a hostile file; None if it is as it should be."""
    try:
        code, out, error = call(*arguments)
    except BaseException as failure:
        last = traceback.extract_tb(failure.__traceback__)[-1]
        where = next((f"{f.filename.rpartition('algocapture/')[2]}:{f.lineno}"
                      for f in reversed(traceback.extract_tb(failure.__traceback__))
                      if "/algocapture/" in f.filename), last.filename)  # fmt: skip
        return f"{arguments[0]}: {type(failure).__name__}: {str(failure)[:100]} ({where})"
    if code not in (0, 1, 2, 3):
        return f"{arguments[0]}: exit code {code}"
    if "Traceback" in error or "Traceback" in out:
        lines = [line for line in (out + error).splitlines() if line.strip()]
        spot = [line.strip() for line in lines if "/algocapture/" in line][-1:]
        return f"{arguments[0]}: a traceback: {lines[-1][:100]} {spot}"
    if code in (1, 2) and not error.strip() and not out.strip():
        return f"{arguments[0]}: exit code {code} without a word"
    if found := CONTROL.search(out + error):
        return f"{arguments[0]}: prints {found[0]!r}"
    return None


VERBS: list[tuple[str, ...]] = [
    ("status",), ("status", "--json"), ("verify",), ("verdict",), ("verdict", "--json"),
    ("report",), ("eval", "--sizes", "4", "--samples", "8"),
    ("export", "--seed", "0", "--size", "4", "--out", "x.safetensors"),
    ("resume", "--launcher", "inline", "--time-limit", "0", "--quiet"),
]  # fmt: skip


def complaints(folder: Path, verbs: list[tuple[str, ...]] = VERBS) -> list[str]:
    found = []
    for verb, *rest in verbs:
        rest = [str(folder.parent / word) if word == "x.safetensors" else word for word in rest]
        (folder.parent / "x.safetensors").unlink(missing_ok=True)
        if (wrong := complaint(verb, folder, *rest)) is not None:
            found.append(wrong)
    return found


def copy_of(folder: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(folder, to, symlinks=True)
    return to


def log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
