"""The capture test on kernel predictors, from the recipes to a verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from algocapture.store import RunFolder
from tests.cli.calling import call

# What makes the recipes a matter of seconds: few draws, T0 alone and hardly any instances.
TINY = {"learner.samples": 8, "learner.key_dim": 4, "protocol.delta": 0.3,
        "protocol.test.maximum": 32, "protocol.test.chunk": 32, "protocol.probes": "[]",
        "protocol.baseline_samples": 32, "limits.samples": 32, "seeds": 1}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "kind"), [("induction", "ntk"), ("string_match", "nngp"), ("shortest_path", "nngp")]
)
def test_a_recipe_at_infinite_width_runs(
    name: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fields = TINY | {"learner.kind": kind}
    changes = [word for key, value in fields.items() for word in ("--set", f"{key}={value}")]
    recipe = f"infinite/{name}"
    code, shown, _ = call(capsys, "run", recipe, "--dry-run", *changes)
    assert code == 0
    assert "refits cost what P asks for" in shown
    out = tmp_path / "run"
    code, _, error = call(capsys, "run", recipe, "--out", out, "--launcher", "inline", *changes)
    assert code == 0, error
    (stage, *_) = RunFolder(out).stages(0)
    assert stage["outcome"] in ("passed", "censored")
    looks = [look["samples"] for look in stage["looks"]]
    assert looks == [32 * i for i in range(len(looks))]  # every instance counted, one batch a look
