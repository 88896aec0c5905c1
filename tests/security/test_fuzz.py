"""Folders forged in their structure: no verb ends in a traceback, a hang or an obeyed escape.

The cases are what runs of `tests/security/fuzz.py` found, and what reading the code suggested.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.security.fuzz import good_run
from tests.security.hostile import (
    VALUES,
    VERBS,
    call,
    changed,
    complaints,
    copy_of,
    forge,
    reseal,
    seal,
)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return good_run(tmp_path_factory.mktemp("good") / "run")


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False))
def test_forged_folders_are_read_or_refused(good: Path, draw: random.Random) -> None:
    folder = copy_of(good, good.parent / "forged")
    if forge(folder, draw):
        assert complaints(folder, VERBS[:5]) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@settings(max_examples=200, deadline=None)
@given(st.randoms(use_true_random=False))
def test_forged_folders_with_every_verb(good: Path, draw: random.Random) -> None:
    folder = copy_of(good, good.parent / "forged")
    if forge(folder, draw):
        assert complaints(folder) == []


def at(path: str, value: Any) -> Callable[[Any], Any]:
    """Set or, with `...`, remove what lies at a dotted path."""

    def change(body: Any) -> Any:
        *parents, last = [int(p) if p.isdecimal() else p for p in path.split(".")]
        held = body
        for key in parents:
            held = held[key]
        if value is ...:
            del held[last]
        else:
            held[last] = value
        return body

    return change


# File, what is changed in it.
CASES = {
    "seeds are none": ("config", at("extension.seeds", ...)),
    "seeds are a text": ("config", at("extension.seeds", "3")),
    "seeds without end": ("config", at("extension.seeds", 10**15)),
    "no delta": ("config", at("identity.protocol.delta", ...)),
    "delta is an object": ("config", at("identity.protocol.delta", {})),
    "protocol is a list": ("config", at("identity.protocol", [])),
    "sizes without end": ("config", at("identity.protocol.growth", 1.0000001)),
    "largest without end": ("config", at("extension.limits.largest", 10**15)),
    "a replication": ("config", at("identity.protocol.type", "PacReplication")),
    "task is a number": ("config", at("identity.task", 3.0)),
    "sessions are a number": ("meta", at("sessions", 3)),
    "a session is a number": ("meta", at("sessions.0", 0.5)),
    "outcome of a stage": ("seed-0000/stage-001", at("outcome", ...)),
    "size of a stage": ("seed-0000/stage-001", at("size", ...)),
    "size is nothing": ("seed-0000/stage-001", at("size", 0)),
    "index of a stage": ("seed-0000/stage-001", at("index", 10**12)),
    "limit is an object": ("seed-0000/stage-002", at("limit", {"a": 1})),
    "a look is a number": ("seed-0000/stage-000", at("looks.0", 1)),
    "looks without bounds": ("seed-0000/stage-000", at("looks.0", {"error": 0.1})),
    "error is none": ("seed-0000/stage-000", at("looks.0.error", None)),
    "a first look without an error": ("seed-0000/stage-001", at("looks.0.error", ...)),
    "a probe without an error": ("seed-0000/stage-000", at("probes.0.error", ...)),
    "looks are empty": ("seed-0000/stage-000", at("looks", [])),
    "ledger without accounts": ("seed-0000/stage-002", at("ledger.0.account", ...)),
    "an unknown account": ("seed-0000/stage-002", at("ledger.0.account", "tax")),
    "samples are huge": ("seed-0000/stage-002", at("ledger.0.samples", 10**400)),
    "a probe without a size": ("seed-0000/stage-000", at("probes.0.size", ...)),
    "baselines are a list": ("seed-0000/stage-000", at("baselines", [1])),
    "an evaluation is a number": ("notes/eval-largest", at("0", 5)),
    "an evaluation without a seed": ("notes/eval-largest", at("0.seed", ...)),
    "the result has no seeds": ("result", at("seeds", ...)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_what_was_found(good: Path, tmp_path: Path, name: str) -> None:
    place, change = CASES[name]
    folder = copy_of(good, tmp_path / "forged")
    envelope = json.loads((folder / f"{place}.json").read_bytes())
    body = change(envelope["body"])
    if place == "config":
        assert reseal(folder, body)
    else:
        assert seal(folder / f"{place}.json", body, place, envelope["run"])
    assert complaints(folder, [*VERBS[:5], VERBS[6], VERBS[8]]) == []


class Elements(HTMLParser):
    """The elements and attributes of a page, without their texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)
        for name, value in attrs:
            if name in ("href", "src", "xlink:href"):
                assert (value or "").startswith(("#", "data:")), value


PAYLOADS = [
    "<script>window.hacked=1</script>",
    '"><img src=x onerror=a>',
    "</style><b>",
    "{{ 7*7 }}",
]


@pytest.mark.filterwarnings("ignore")
def test_texts_of_records_are_texts_on_the_page(good: Path, tmp_path: Path) -> None:
    """Every text that the page may show is a payload: the page has no element more."""
    folder = copy_of(good, tmp_path / "forged")
    assert call("report", folder)[0] == 0
    before = Elements((folder / "report.html").read_text("utf-8"))
    draw = random.Random(0)

    def poison(value: Any) -> Any:
        if isinstance(value, dict):
            kept = ("type", "outcome", "account", "stage", "base")
            return {k: v if k in kept else poison(v) for k, v in value.items()}
        if isinstance(value, list):
            return [poison(v) for v in value]
        return draw.choice(PAYLOADS) if isinstance(value, str) else value

    config = json.loads((folder / "config.json").read_bytes())["body"]
    config["identity"]["task"] = {"type": PAYLOADS[0], "name": PAYLOADS[1]}
    config["identity"]["learner"] = {"type": PAYLOADS[1], "model": {"type": PAYLOADS[2]}}
    assert reseal(folder, config)
    for path in [folder / "meta.json", *folder.glob("seed-*/stage-*.json")]:
        envelope = json.loads(path.read_bytes())
        body = poison(envelope["body"])
        if "baselines" in body:
            body["baselines"] = dict.fromkeys(PAYLOADS, 0.1)
        assert seal(path, body, envelope["place"], envelope["run"])
    assert call("report", folder)[0] == 0
    text = (folder / "report.html").read_text("utf-8")
    after = Elements(text)
    assert set(after.found) == set(before.found)
    assert "script" not in after.found
    assert "&lt;script&gt;" in text
    assert "49" not in re.findall(r">\s*(\d+)\s*<", text)


def test_the_forger_forges(good: Path, tmp_path: Path) -> None:
    """It reaches every kind of file, and seals so well that most of its work is read."""
    changed_files, read = set(), 0
    for seed in range(60):
        folder = copy_of(good, tmp_path / "forged")
        before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        if not forge(folder, random.Random(seed)):
            continue
        new = {re.sub(r"\d+", "", p.name) for p, data in before.items() if p.read_bytes() != data}
        changed_files |= new
        read += "damaged" not in call("verify", folder)[1]
    assert {"config.json", "meta.json", "result.json", "stage-.json", "eval-largest.json",
            "checkpoint-.safetensors", "model-.safetensors"} <= changed_files  # fmt: skip
    assert read > 15


def test_changes_are_changes() -> None:
    value = {"a": [1, 2, {"b": "c"}], "d": None}
    found = [changed(value, random.Random(seed)) for seed in range(200)]
    assert sum(one != value for one in found) > 150
    assert len({repr(one) for one in found}) > 80
    assert any(v in VALUES for one in found if isinstance(one, dict) for v in one.values())
