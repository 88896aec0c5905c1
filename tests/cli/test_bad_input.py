"""Whatever is wrong: one clear message, exit code 1 or 2, no traceback, nothing left behind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algocapture.cli import main
from algocapture.config import ConfigError, from_json
from algocapture.experiment import Experiment
from algocapture.store import RunFolder
from tests.cli.calling import call
from tests.experiment.tiny import tiny

RECIPES = {
    "def experiment(:\n": r"SyntaxError: invalid syntax \(line 1\)",
    "import no_such_module\n": r"ModuleNotFoundError.*no_such_module.*\(line 1\)",
    "def experiment():\n    return 1 / 0\n": r"experiment\(\) of .* ZeroDivisionError.*\(line 2\)",
    "def experiment():\n    pass\n": r"returned NoneType: return an Experiment",
    "def experiment(n):\n    return n\n": r"TypeError: experiment\(\) missing 1 required",
    "raise SystemExit(0)\n": r"SystemExit: 0 \(line 1\)",
    "x = 1\n": r"defines no function experiment\(\)",
}


def refused(
    capsys: pytest.CaptureFixture[str], message: str, *arguments: object, out: str = ""
) -> None:
    status, shown, error = call(capsys, *arguments)
    assert status in (1, 2), (status, error)
    assert shown == out
    assert "Traceback" not in error
    assert len(re.findall("^Error: ", error, re.M)) == 1
    assert re.search(message, " ".join(error.split())), error


@pytest.mark.parametrize(("text", "message"), RECIPES.items())
def test_a_recipe_with_an_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "own.py").write_text(text)
    refused(capsys, message, "run", tmp_path / "own.py", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["quickstrat"], "there is no recipe 'quickstrat'; did you mean quickstart"),
        (["../../x"], r"there is no recipe '\.\./\.\./x'"),
        (["/etc/passwd"], "there is no recipe '/etc/passwd'"),
        (["quickstart/../../x"], "there is no recipe 'quickstart/../../x'"),
        (["no_such.py"], "there is no recipe file"),
        (["quickstart", "--set", "tsk.vocab=3"], "no field 'tsk'; did you mean task"),
        (["quickstart", "--set", "task.vocb=3"], "no field 'vocb'; did you mean vocab"),
        (["quickstart", "--set", "task.vocab=x"], "task.vocab = 'x': expected int"),
        (["quickstart", "--set", "task.vocab"], "write FIELD=VALUE"),
        (["quickstart", "--set", "task.vocab=-3"], "vocab must be .* >= 2, got -3"),
        (["quickstart", "--set", "limits.samples=-3"], "samples must be >= 1, got -3"),
        (["quickstart", "--set", "learner.lr=-1"], "lr must be a finite number > 0, got -1"),
        (["quickstart", "--set", "learner.lr=NaN"], "learner.lr = 'NaN'"),
        (["quickstart", "--seeds", "-3"], "seeds must be >= 1, got -3"),
        (["quickstart", "--seeds", "99999999"], "seeds must be <= 10000, got 99999999"),
        (["quickstart", "--time-limit", "-3"], "seconds must be at least 0"),
        (["quickstart", "--device", "banana"], "device = 'banana' cannot be used here"),
        (["quickstart", "--device", "cuda:99"], "device = 'cuda:99' cannot be used here"),
        (["quickstart", "--device", "meta"], "device = 'meta' cannot be used here"),
        (["quickstart", "--launcher", "moon"], "'moon' is not one of"),
    ],
)
def test_run_refuses(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], message: str
) -> None:
    refused(capsys, message, "run", *arguments, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_out_that_cannot_be_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for place in ("file", "file/below"):
        refused(capsys, "cannot", "run", "quickstart", "--out", tmp_path / place)
    refused(capsys, "not a run and not empty", "run", "quickstart", "--out", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def stage(index: int, size: int, outcome: str = "passed") -> dict[str, Any]:
    spent = 1000 + 50 * index
    return {"index": index, "size": size, "outcome": outcome, "spent": spent, "spent_low": spent}


def stored(path: Path, seeds: list[list[dict[str, Any]]]) -> Path:
    """A run as the store writes it, with stages that no engine would have made."""
    experiment = tiny(seeds=max(1, len(seeds)))
    with RunFolder.enter(path, experiment.identity(), experiment.extension()) as run:
        for seed, stages in enumerate(seeds):
            for index, body in enumerate(stages):
                run.append_stage(seed, index, body)
    return path


GOOD = [stage(index, 4 + index) for index in range(6)]
STAGES = {
    "no stage": ([], "has no decided stage yet"),
    "one seed": ([GOOD], "at least two seeds|seeds"),
    "one size": ([GOOD[:1]] * 3, "T0"),
    "all censored": ([[stage(0, 4, "censored")]] * 3, "T0"),
    "sizes that fall": ([[*GOOD[:3], stage(3, 4)]] * 3, "must be positive and increasing"),
    "no field": ([[{"index": 0, "size": 4, "outcome": "passed"}]] * 3, "lack the field 'spent'"),
    "no outcome": ([[{"index": 0, "size": 4, "spent": 1, "spent_low": 1}]] * 3, "'outcome'"),
    "no size": ([[stage(0, 4) | {"size": None}]] * 3, "size = None"),
    "foreign baselines": ([[*GOOD[:5], GOOD[5] | {"baselines": [1]}]] * 3, "baselines = "),
    "a text": ([[stage(0, 4) | {"spent": "many"}]] * 3, "spent"),
}


@pytest.mark.parametrize("name", STAGES)
def test_runs_without_a_verdict(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    seeds, message = STAGES[name]
    refused(capsys, message, "verdict", stored(tmp_path / "run", seeds))
    refused(capsys, message, "verdict", tmp_path / "run", "--json")


def test_three_good_seeds_have_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """So that what the table above refuses is refused for its reason."""
    assert call(capsys, "verdict", stored(tmp_path / "run", [GOOD] * 3))[0] == 0


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "one bit": lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:],
    "foreign": lambda data: b'{"name": "a package of somebody", "version": "1.0"}',
    "no object": lambda data: b"[1, 2, 3]",
    "nested": lambda data: b"[" * 100_000,
    "not text": lambda data: b"\xff\xfe\x00",
    "another schema": lambda data: data.replace(b'"schema":1', b'"schema":99').replace(
        b'"schema": 1', b'"schema": 99'
    ),
}
VERBS = ("status", "verify", "verdict", "resume", "report")


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_configuration(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    config = stored(tmp_path / "run", [GOOD] * 3) / "config.json"
    damaged = DAMAGE[name](config.read_bytes())
    assert damaged != config.read_bytes()
    config.write_bytes(damaged)
    for verb in VERBS:
        refused(capsys, r"config\.json", verb, config.parent)


@pytest.mark.parametrize("verb", [*VERBS, "eval"])
def test_a_folder_that_is_no_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, verb: str
) -> None:
    rest = ("--sizes", "4") if verb == "eval" else ()
    refused(capsys, "is not a run: it holds no config.json", verb, tmp_path, *rest)
    refused(capsys, "is not a run|cannot", verb, tmp_path / "absent", *rest)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sizes", ""], "write integers separated by commas"),
        (["--sizes", "4,x"], "write integers separated by commas"),
        (["--sizes", "4,0"], "integers >= 4"),
        (["--sizes", "4", "--samples", "0"], "samples must be >= 1, got 0"),
        (["--sizes", "4", "--trained", "77"], "size = 77 is no passed stage of seed 0"),
        (["--sizes", "4"], "no weights of seed 0"),
    ],
)
def test_eval_refuses(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], message: str
) -> None:
    refused(capsys, message, "eval", stored(tmp_path / "run", [GOOD]), *arguments)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "task", "seeds", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = list(tiny().identity() | tiny().extension())


@given(field=st.sampled_from(FIELDS), value=JSON)
@settings(max_examples=150, deadline=None)
def test_a_configuration_is_read_or_refused(field: str, value: Any) -> None:
    data = tiny().identity() | tiny().extension() | {field: value}
    try:
        held = from_json(json.loads(json.dumps(data)))
    except ValueError:  # ConfigError, or what a field's own check says
        return
    assert isinstance(held, Experiment)


@given(value=JSON)
@settings(max_examples=150, deadline=None)
def test_any_json_is_read_or_refused(value: Any) -> None:
    try:
        from_json(value)
    except ConfigError:
        return


def test_a_mistake_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("shapes differ")

    monkeypatch.setattr("algocapture.cli.show.card", broken)
    with pytest.raises(RuntimeError, match="shapes differ"):
        main(["show", "Induction", "--size", "8"])
