"""Completion as the shell asks for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from algocapture.cli.app import VERBS, algocapture_command
from algocapture.cli.recipe_files import names

ROOT = Path(__file__).resolve().parents[2]


def completed(*words: str) -> list[str]:
    shell = BashComplete(algocapture_command, {}, "algocapture", "_ALGOCAPTURE_COMPLETE")
    return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("",), list(VERBS)),
        (("ver",), ["verdict", "verify"]),
        (("run", ""), names()),
        (("run", "quick"), ["quickstart"]),
        (("run", "--seeds", "3", "quick"), ["quickstart"]),
        (("run", "mine.p"), ["mine.p"]),  # a file: the shell goes on
        (("verdict", "runs/qu"), ["runs/qu"]),
        (("run", "--dry"), ["--dry-run"]),
        (("verdict", "--js"), ["--json"]),
    ],
)
def test_words(words: tuple[str, ...], expected: list[str]) -> None:
    assert completed(*words) == expected


def test_bash_asks_without_torch() -> None:
    """In a process of its own, as the shell does it."""
    code = (
        "import sys\n"
        "from algocapture.cli import main\n"
        "try:\n    main()\n"
        "finally:\n    assert not {'torch', 'scipy', 'matplotlib'} & set(sys.modules)\n"
    )
    asked = {"_ALGOCAPTURE_COMPLETE": "bash_complete"}
    asked |= {"COMP_WORDS": "algocapture run quick", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=os.environ | asked, capture_output=True,
        text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "plain,quickstart\n", "")
