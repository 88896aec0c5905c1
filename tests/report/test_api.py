"""docs/api.md is a script that runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from matplotlib.figure import Figure

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"
SCRIPT = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))


def test_page_is_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(SCRIPT, str(PAGE), "exec"), names)
    assert names["results"].complete is True
    assert (tmp_path / "runs" / "tiny.html").is_file()
    assert names["verdict"] is not None
    assert isinstance(names["figure"], Figure)
    assert str(names["html"]).startswith("<!DOCTYPE html>")
    assert {"curve.svg", "curve.pdf", "curve.png", "curve.csv", "curve.json"} <= {
        file.name for file in (tmp_path / "runs" / "figures").iterdir()
    }
    assert len(names["table"]) == sum(map(len, names["summary"].stages.values())) > 6
    assert len(names["rows"]) == 2 * 3
