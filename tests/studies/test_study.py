"""The kind of recipe that measures: parts as units, each kept once, whatever kills the run."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from algocapture.config import ConfigError, from_json
from algocapture.experiment import conduct
from algocapture.launch import Inline
from algocapture.report.findings import draw_chart, markdown
from algocapture.stats.findings import Chart, Findings, Row
from algocapture.stats.power import power_law
from algocapture.store import RunFolder, StoreError, verify
from algocapture.studies import Study
from tests.cli.calling import call
from tests.crash import KillAt, in_child

RECIPE = '''"""Squares, measured."""

from dataclasses import dataclass

from algocapture.stats.findings import Chart, Findings
from algocapture.stats.power import power_law
from algocapture.studies import Study


@dataclass(frozen=True)
class Squares(Study):
    count: int = 3
    broken: bool = False

    def parts(self):
        return tuple(f"part-{i}" for i in range(self.count))

    def measure(self, part):
        if self.broken:
            raise ArithmeticError("no squares today")
        draw = self.seed(part).numpy().random()
        n = 1 + int(part[-1])
        return [{"n": n, "square": float(n**2), "draw": draw}]

    def findings(self, rows):
        held = [row for part in rows.values() for row in part]
        fit = power_law([r["n"] for r in held], [r["square"] for r in held], "squares",
                        bar=(2, 2.1))
        return Findings("Squares", {"squares": held}, (fit,),
                        (Chart("squares", "square", "squares", "n", "square", "n"),))


def study():
    return Squares()
'''


@dataclass(frozen=True)
class Toy(Study):
    """As above, for forked children: no class of a user's file is needed."""

    count: int = 3

    def parts(self) -> tuple[str, ...]:
        return tuple(f"part-{i}" for i in range(self.count))

    def measure(self, part: str) -> list[Row]:
        return [{"n": 1 + int(part[-1]), "draw": self.seed(part).numpy().random()}]

    def findings(self, rows: Mapping[str, list[Row]]) -> Findings:
        chart = Chart("draws", "draw", "draws", "n", "draw", "n")
        return Findings(
            "Toy", {"draws": [r for part in rows.values() for r in part]}, charts=(chart,)
        )


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "squares.py"
    path.write_text(RECIPE)
    return path


def test_a_recipe_is_run_to_its_tables(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = recipe.parent / "out"
    code, shown, _ = call(capsys, "run", recipe, "--out", out)
    assert code == 0
    assert "squares: 2.000 [2.000, 2.000]; met" in shown
    result = json.loads((out / "result.json").read_text())["body"]
    assert [rows[0]["square"] for rows in result["parts"].values()] == [1.0, 4.0, 9.0]
    assert (out / "tables" / "squares.csv").read_text().splitlines()[0] == "draw,n,square"
    assert "<svg" in (out / "figures" / "squares.svg").read_text()
    assert "| squares | 2 | 2 | 2 | 3 |" in (out / "summary.md").read_text()
    assert verify(out).ok
    assert verify(out).result == "matches"
    before = (out / "result.json").read_bytes()
    (out / "parts" / "part-1.json").unlink()
    assert "2 of 3 parts are measured" in call(capsys, "status", out)[1]
    code, _, _ = call(capsys, "resume", out, "--recipe", recipe, "--launcher", "processes")
    assert code == 0
    assert (out / "result.json").read_bytes() == before


def test_another_configuration_is_refused(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = recipe.parent / "out"
    assert call(capsys, "run", recipe, "--out", out, "--quiet")[0] == 0
    code, _, error = call(capsys, "run", recipe, "--out", out, "--set", "count=4")
    assert code == 2
    assert "count: 3 -> 4" in error
    code, _, error = call(capsys, "verdict", out)
    assert code == 2
    assert "is a study" in error


def test_dry_run_and_failures(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = recipe.parent / "out"
    code, shown, _ = call(capsys, "run", recipe, "--out", out, "--dry-run", "--json")
    assert (code, json.loads(shown)[0]["parts"]) == (0, ["part-0", "part-1", "part-2"])
    assert not out.exists()
    code, _, error = call(capsys, "run", recipe, "--out", out, "--set", "broken=true")
    assert code == 1
    assert "no squares today" in error
    recipe.write_text("def study():\n    return 3\n")
    code, _, error = call(capsys, "run", recipe)
    assert code == 2
    assert "study() of" in error
    assert "returned int: return a Study" in error


def test_a_time_limit_stops_between_parts(tmp_path: Path) -> None:
    assert not conduct(Toy(), tmp_path / "r", Inline(), time_limit=0.0)
    assert RunFolder(tmp_path / "r").parts() == []
    assert conduct(Toy(), tmp_path / "r", Inline())


def work(folder: Path) -> None:
    assert conduct(Toy(), folder, Inline())


@pytest.mark.parametrize("point", ["create", "torn", "rename", "fsync-folder"])
def test_killed_at_any_write_and_resumed(point: str, tmp_path: Path) -> None:
    """SIGKILL before the nth primitive for n = 1, 2, ...: every part that was there stays as it
    was, and the end is the uninterrupted one."""
    work(tmp_path / "whole")
    expected = (tmp_path / "whole" / "result.json").read_bytes()
    kills, nth, folder = 0, 1, tmp_path / "killed"
    seen: dict[str, bytes] = {}
    while in_child(work, folder, KillAt(point, nth)) == -signal.SIGKILL:
        kills, nth = kills + 1, nth + 1
        held = {p.name: p.read_bytes() for p in (folder / "parts").glob("part-*.json")}
        assert seen.items() <= held.items()
        seen = held
        assert kills < 40
    assert kills > 3
    assert (folder / "result.json").read_bytes() == expected
    assert verify(folder).ok


def test_a_damaged_part_is_measured_again(tmp_path: Path) -> None:
    work(tmp_path)
    whole = (tmp_path / "result.json").read_bytes()
    path = tmp_path / "parts" / "part-1.json"
    path.write_bytes(path.read_bytes().replace(b'"n": 2', b'"n": 7'))
    assert not verify(tmp_path).ok
    work(tmp_path)
    assert verify(tmp_path).ok
    assert (tmp_path / "result.json").read_bytes() == whole


def test_a_part_is_never_replaced(tmp_path: Path) -> None:
    work(tmp_path)
    run = RunFolder(tmp_path)
    before = run.part("part-0")
    run.write_part("part-0", [{"n": 9}])
    assert run.part("part-0") == before
    with pytest.raises(StoreError, match="a part's name is letters"):
        run.write_part("../x", [])


def test_page_and_figure_of_odd_values() -> None:
    rows = [{"n": 1, "v": None, "kind": "a|b"}, {"n": 2, "v": 0.12345678, "kind": "c"}]
    chart = Chart("v", "value", "t", "n", "v", "n", series="kind")
    text = markdown(Findings("Odd", {"t": rows, "none": []}, charts=(chart,), notes=("note",)))
    assert "| 2 | 0.1235 | c |" in text
    assert "a\\|b" in text
    assert "(empty)" in text
    (ax,) = draw_chart(chart, rows).axes
    assert len(ax.lines) == 2
    for label in (*ax.get_xticklabels(), *ax.get_yticklabels()):
        assert "$" not in label.get_text()
    assert len(ax.get_xticks()) >= 2
    with pytest.raises(ValueError, match="draws table 'u'; tables: t"):
        Findings("Odd", {"t": rows}, charts=(Chart("v", "", "u", "n", "v", ""),))


def test_fields_of_a_study_are_checked() -> None:
    with pytest.raises(ValueError, match="threads must be >= 1, got 0"):
        Toy(threads=0)
    with pytest.raises(ConfigError, match="Toy"):
        from_json(Toy().identity())  # not registered: an own class needs its file


def test_power_laws() -> None:
    """Exact laws are found exactly; of noisy ones the interval holds the truth in 95% of 400."""
    import numpy as np

    x = [1.0, 2.0, 4.0, 8.0, 16.0]
    exact = power_law(x, [3 * v**-1.5 for v in x], "w", bar=(-1.6, -1.4))
    assert exact.value == pytest.approx(-1.5, abs=1e-12)
    assert exact.met is True
    generator = np.random.default_rng(0)
    held = {False: 0, True: 0}
    for _ in range(400):
        noise = generator.normal(size=5)
        y = [v**-0.5 * np.exp(0.1 * e) for v, e in zip(x, noise, strict=True)]
        for known in held:
            fit = power_law(x, y, stderr=[0.1 * v for v in y] if known else None)
            held[known] += fit.low <= -0.5 <= fit.high
    assert 0.92 * 400 <= held[False] <= 0.98 * 400
    assert held[True] >= 0.92 * 400
    with pytest.raises(ValueError, match="3 or more points"):
        power_law([1, 2], [1, 2])
    with pytest.raises(ValueError, match="finite numbers > 0"):
        power_law([1, 2, 3], [1, 0, 3])
