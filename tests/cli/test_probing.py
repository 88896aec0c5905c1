"""`eval` and `export` for a run of a user's own file: what works, and what is refused in a line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import safetensors
import torch
from safetensors.torch import load_file

from algocapture.cli import driving, main
from algocapture.cli.loading import load
from algocapture.experiment import drive, export_model, load_exported, load_model
from algocapture.launch import Inline
from algocapture.store import RunFolder
from tests.experiment.tiny import tiny

OWN = """
from dataclasses import dataclass, replace
from algocapture.models import ModelConfig, Transformer
from tests.experiment.tiny import tiny

@dataclass(frozen=True)
class Own(ModelConfig):
    width: int = 8

    def build(self, spec, generator):
        return Transformer(depth=2, width=self.width, heads=2, mlp=8).build(spec, generator)

def experiment():
    held = tiny(seeds=1)
    return replace(held, learner=replace(held.learner, model=Own()))
"""


def call(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    shown = capsys.readouterr()
    return int(stop.value.code or 0), shown.out, shown.err


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A finished run of a module of the user's, begun with --set, and its recipe. It has one seed,
    which is no verdict and no failure."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.py").write_text(OWN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driving, "draw", lambda summary, as_json: None)
        words = ["run", str(folder / "own.py"), "--out", str(folder / "run"), "--quiet", *SET]
        with pytest.raises(SystemExit) as stop:
            main(words)
    assert not stop.value.code
    return folder / "run", folder / "own.py"


SET = ("--set", "learner.model.width=12", "--launcher", "inline")
AGAIN = SET[:2]


def test_eval_of_a_users_module(own: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    folder, recipe = own
    words = ("eval", folder, "--sizes", "4,6,9", "--samples", "300", "--json")
    status, out, _ = call(capsys, *words, "--recipe", recipe, *AGAIN)
    assert status == 0
    rows = json.loads(out)
    assert [row["size"] for row in rows] == [4, 6, 9]
    assert rows == RunFolder(folder).read_note("eval-largest")
    look = RunFolder(folder).stages(0)[-1]["looks"][-1]
    assert look["low"] < rows[1]["error"] < look["high"]
    status, out, _ = call(capsys, *words, "--recipe", recipe, *AGAIN, "--trained", 4)
    assert (status, {row["trained"] for row in json.loads(out)}) == (0, {4})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give that file with --recipe"),
        (("--recipe", "OWN"), "learner.model.width: 12 -> 8"),
        (("--recipe", "OWN", *AGAIN, "--sizes", "3"), "sizes = [3]: one or more integers >= 4"),
        (("--recipe", "OWN", *AGAIN, "--sizes", ""), "write integers separated by commas"),
        (("--recipe", "OWN", *AGAIN, "--sizes", "5,x"), "--sizes '5,x'"),
        (("--recipe", "OWN", *AGAIN, "--samples", "0"), "samples must be >= 1, got 0"),
        (("--recipe", "OWN", *AGAIN, "--trained", "7"), "7 is no passed stage of seed 0; passed"),
        (("--recipe", "OWN", *AGAIN, "--trained", "0"), "0 is no passed stage of seed 0; passed"),
    ],
)
def test_eval_refuses(
    own: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    message: str,
) -> None:
    folder, recipe = own
    given = [str(recipe) if word == "OWN" else word for word in words]
    status, out, err = call(capsys, "eval", folder, "--sizes", "5", *given)
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_export_of_a_users_module(
    own: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file opens in safetensors' own reader, and gives the module that the run kept."""
    folder, recipe = own
    held, out = load(str(recipe), AGAIN[1:]).only(), tmp_path / "sub" / "model.safetensors"
    words = ("export", folder, "--seed", 0, "--size", 5, "--recipe", recipe, *AGAIN)
    assert call(capsys, *words, "--out", out)[0] == 0
    kept = load_model(folder, 0, 5, held)
    weights = load_file(out)
    assert {k: v.shape for k, v in weights.items()} == {
        k: v.shape for k, v in kept.named_parameters()
    }
    with safetensors.safe_open(out, framework="pt") as file:
        said = json.loads(file.metadata()["algocapture"])["body"]
    assert (said["size"], said["spec"]["vocab"], said["precision"]) == (5, 3, "float32")
    assert said["model"] == {"type": "user:Own", "width": 12}
    assert said["error"]["error"] < 0.45
    inputs = held.task.sample(5, 20, torch.Generator().manual_seed(0)).inputs
    with torch.no_grad():
        assert torch.equal(load_exported(out, held.learner.model)(inputs), kept(inputs))
    with pytest.raises(ValueError, match="give that file with --recipe"):
        load_exported(out)
    with pytest.raises(ValueError, match="the weights are of another module"):
        load_exported(out, tiny().learner.model)
    status, _, err = call(capsys, *words, "--out", out)
    assert (status, "exists: choose another name" in err) == (2, True)
    status, _, err = call(capsys, *words, "--out", tmp_path / "model.bin")
    assert (status, "ends in .safetensors" in err) == (2, True)


def test_export_of_our_module_and_damage(tmp_path: Path) -> None:
    folder, out = tmp_path / "run", tmp_path / "model.safetensors"
    assert drive(tiny(seeds=1), folder, Inline())
    body = export_model(folder, 0, 6, out)
    assert body["model"]["type"] == "Transformer"
    inputs = tiny().task.sample(6, 20, torch.Generator().manual_seed(0)).inputs
    with torch.no_grad():
        assert torch.equal(load_exported(out)(inputs), load_model(folder, 0, 6)(inputs))
    with pytest.raises(ValueError, match=r"seed = 5 is not of this run; seeds: \[0\]"):
        export_model(folder, 5, 6, tmp_path / "other.safetensors")
    data = bytearray(out.read_bytes())
    data[-9] ^= 4
    out.write_bytes(data)
    with pytest.raises(ValueError, match="SHA-256 does not match"):
        load_exported(out)
    out.write_bytes((folder / "seed-0000" / "model-000.safetensors").read_bytes())
    with pytest.raises(ValueError, match="it is not an exported model"):
        load_exported(out)
