"""`tasks` and `show`: what they print is true, and bad input is one line with exit code 2."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys

import click
import pytest
import torch

from algocapture.cli import app, main
from algocapture.cli.draw import ROLES
from algocapture.tasks import Induction, ShortestPath, StringMatch
from algocapture.tasks.card import catalogue, find, portrait

NAMES = ["GrammarRecognition", "Induction", "MinCut", "ShortestPath", "Sorting", "StringMatch"]


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    shown = capsys.readouterr()
    return int(stop.value.code or 0), shown.out, shown.err


def test_tasks_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, "tasks", "--names")
    assert status == 0
    assert set(NAMES) <= set(out.split())  # other tests may have registered tasks of theirs
    assert out.split() == sorted(out.split())
    _, out, _ = call(capsys, "tasks", "--json")
    assert json.loads(out) == catalogue()
    assert {e["task"]: e for e in catalogue()}["Induction"]["fields"] == {"vocab": 1024}
    status, out, _ = call(capsys, "tasks")
    assert status == 0
    assert "[u, SEP, s]" in " ".join(out.split())  # text of a docstring is never markup


@pytest.mark.parametrize("name", NAMES)
def test_show(capsys: pytest.CaptureFixture[str], name: str) -> None:
    status, out, _ = call(capsys, "show", name.upper(), "--size", "12", "--n", "2", "--json")
    content = json.loads(out)
    assert status == 0
    assert len(content["instances"]) == 2
    assert {role for one in content["instances"] for _, role in one["symbols"]} <= set(ROLES)
    assert content["baselines"]
    assert content["statistics"]["labels"]
    status, out, _ = call(capsys, "show", name, "--size", "12", "--n", "2")
    assert status == 0
    assert f"{name}, T = 12" in out
    assert all(baseline in out for baseline in content["baselines"])


def test_a_seed_is_a_card(capsys: pytest.CaptureFixture[str]) -> None:
    one, two, three = (
        call(capsys, "show", "Induction", "--size", "9", "--json", "--seed", seed)[1]
        for seed in ("1", "1", "2")
    )
    assert one == two != three


def test_set_reaches_the_fields(capsys: pytest.CaptureFixture[str]) -> None:
    change = ("--set", "vocab=2", "--json")
    _, out, _ = call(capsys, "show", "Induction", "--size", "9", *change)
    content = json.loads(out)
    assert content["fields"] == {"vocab": 2}
    assert {text for one in content["instances"] for text, _ in one["symbols"]} <= {"0", "1"}


def test_symbols_of_known_instances() -> None:
    task = StringMatch(near_misses=0)
    row = torch.tensor([23, 0, 1, 2, 0, 1, 25, 26, 0, 1, 2])  # xabcabz SEP abc
    roles = ["", *["match"] * 3, *["near miss"] * 3, "separator", "", "", ""]
    assert task.symbols(row) == list(zip([*"xabcabz", "SEP", *"abc"], roles, strict=True))
    assert Induction().symbols(torch.tensor([5, 7, 9, 7])) == [
        ("5", ""),
        ("7", "trigger"),
        ("9", "answer"),
        ("7", "trigger"),
    ]


def test_a_graph_s_picture_has_its_edges() -> None:
    task = ShortestPath()
    batch = task.sample(20, 1, torch.Generator().manual_seed(0))
    graph = portrait(task, batch)["graph"]
    assert len(graph["points"]) == 20
    joined = torch.zeros(20, 20, dtype=torch.bool)
    for i, j in graph["edges"]:
        joined[i, j] = joined[j, i] = True
    assert torch.equal(joined, task.edges(batch.inputs)[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["shwo"], "there is no verb 'shwo'; did you mean show?"),
        (["show"], "Missing argument 'TASK'"),
        (["show", "Induction"], "Missing option '--size'"),
        (["show", "Inducton", "--size", "9"], "there is no task 'Inducton'; did you mean Inductio"),
        (["show", "Induction", "--size", "3"], "size of Induction must be an integer >= 4, got 3"),
        (["show", "Induction", "--size", "x"], "'x' is not a valid integer"),
        (["show", "Induction", "--size", "9", "--n", "0"], "n, the number of instances, must be"),
        (["show", "Induction", "--size", "9", "--seed", "-1"], "root seed must be an integer >= 0"),
        (["show", "Induction", "--size", "9", "--set", "vocab"], "write FIELD=VALUE"),
        (["show", "Induction", "--size", "9", "--set", "vocb=3"], "did you mean vocab?"),
        (["show", "Induction", "--size", "9", "--set", "vocab=x"], "vocab = 'x': expected int"),
        (["show", "Induction", "--size", "9", "--set", "vocab=1"], "vocab must be an integer >= 2"),
    ],
)
def test_bad_input(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    status, out, err = call(capsys, *arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8000 bytes."
        ),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 8000 bytes.\nGPU 0 has ..."),
        MemoryError("Unable to allocate 8000 bytes"),
    ],
)
def test_too_little_memory_is_one_line(capsys, monkeypatch, error: Exception) -> None:
    def sample(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(Induction, "sample", sample)
    status, out, err = call(capsys, "show", "Induction", "--size", "9")
    assert (status, out) == (1, "")
    assert re.fullmatch(r"Error: not enough memory: .* smaller size \(.* 8000 bytes\.?\)\n", err)
    monkeypatch.setattr(error, "args", ("something else is wrong",))
    if type(error) is RuntimeError:  # a bug keeps its traceback
        with pytest.raises(RuntimeError, match="something else"):
            main(["show", "Induction", "--size", "9"])


@pytest.mark.parametrize("verb", [*app.VERBS, *app.HIDDEN])
def test_every_verb_is_a_command(verb: str) -> None:
    command = getattr(importlib.import_module(f"algocapture.cli.{verb}"), verb)
    assert isinstance(command, click.Command)
    assert command.name == verb


def test_help_lists_all_verbs_and_codes(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, "--help")
    assert status == 0
    assert re.findall(r"^  (\w+) +[A-Z]", out, re.M) == list(app.VERBS)
    assert all(code in " ".join(out.split()) for code in ("0 done", "1 failed", "2 usage", "3 int"))


def test_a_reader_that_leaves_is_no_error() -> None:
    """`algocapture show ... | head -1`: no traceback, whatever the status."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "algocapture", "tasks", "--names"], stdout=write, stderr=-1
    )
    os.close(write)
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


def test_find_ignores_case() -> None:
    assert find("mincut") is find("MinCut")
