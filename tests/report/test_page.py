"""The page: made for every kind of run, whole, escaped, small, the same bytes each time."""

from __future__ import annotations

import csv
import html
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from algocapture.cli import main
from algocapture.launch import Inline
from algocapture.report import figure_exponent, page, summarise, write_figures
from algocapture.report.html import _raised
from algocapture.report.style import to_bytes
from algocapture.stats import Curve
from tests.experiment.tiny import tiny
from tests.report.runs import world, write_run

FREE = [Curve([50, 60, 72, 86], [10240] * 4, spent_low=[9000, *[10240] * 3])] * 3
STEPS = Curve(
    [50, 60, 72, 86, 103],
    [10240, 10240, 10752, 10752, 11264],
    spent_low=[9000, 10240, 10240, 10752, 10752],
)

# A run's curves, and what its page must say.
KINDS = {
    "captured": (lambda: world(0.0, 1, censored=0), "Captured at delta = 0.05"),
    "not captured": (
        lambda: world(1.0, 2, stages=12, censored=0.5),
        "Not captured at delta = 0.05",
    ),
    "undecided": (lambda: world(0.2, 5, stages=6, noise=0.7), "Undecided at delta"),
    "whole": (lambda: world(0.8, 3, cumulative=False), "Not captured"),
    "floor": (lambda: [STEPS] * 3, "at most one look"),
    "free": (lambda: FREE, "without any adaptation"),
    "one seed": (lambda: world(0.0, 1, seeds=1), "There is no verdict: one seed cannot show"),
    "one size": (lambda: [Curve([50], [10000])] * 3, "every curve has one size"),
    "all censored": (
        lambda: [Curve([50, 60], [10000, 90000], censored=True)] * 3,
        "no stage was passed",
    ),
    "T0 censored": (lambda: [Curve([50], [9000], censored=True)] * 3, "every curve has one size"),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "captured", world(0.0, 1, censored=0))


class Shape(HTMLParser):
    """Elements are closed in order, identifiers are unique, nothing points outside."""

    VOID = {"meta", "link", "br"}  # noqa: RUF012

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        self.ids += [v or "" for k, v in attrs if k == "id"]
        self.links += [v or "" for k, v in attrs if k in ("href", "src", "xlink:href")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("kind", KINDS)
def test_page_of_every_kind_of_run(tmp_path: Path, kind: str) -> None:
    curves, says = KINDS[kind]
    text = page([write_run(tmp_path / "run", curves())])
    assert says in text
    assert "is not finished" not in text
    shape = Shape(text)
    assert shape.open == []
    assert len(shape.ids) == len(set(shape.ids))
    assert "script" not in shape.names
    assert all(link.startswith(("#", "data:")) for link in shape.links)
    assert {link[1:] for link in shape.links if link.startswith("#")} <= set(shape.ids)
    assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(shape.ids)
    assert len(text.encode()) < 400_000
    assert "nan" not in re.sub(r"<[^>]*>", " ", text).lower().split()


def test_page_of_an_unfinished_run_says_so(tmp_path: Path) -> None:
    unfinished = write_run(tmp_path / "run", world(0.5, 6, stages=3), finish=False)
    assert "is not finished" in page([unfinished])


def test_page_is_the_same_bytes(tmp_path: Path) -> None:
    small = write_run(tmp_path / "run", world(0.0, 1, stages=4, seeds=2))
    assert page([small]) == page([small])


def test_runs_are_compared(tmp_path: Path, run: Path) -> None:
    other = write_run(
        tmp_path / "run", world(0.0, 7, stages=15, censored=0), protocol={"delta": 0.02}
    )
    text = page([run, other])
    assert "2 runs compared" in text
    assert "Captured at every delta tried" in text
    assert '<td class="field">protocol.delta</td><td>0.05</td><td>0.02</td>' in text


@pytest.mark.slow
def test_largest_page_is_below_a_megabyte(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / f"run-{i}", world(0.1 * i, i, stages=29, seeds=10)) for i in range(10)
    ]
    assert len(page(runs).encode()) < 1_000_000


def test_figures_are_written_with_their_data(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", world(0.0, 1, stages=5, seeds=2))
    written = {p.name for p in write_figures([summarise(run)], tmp_path / "figures")}
    for name in ("curve", "cost", "error", "exponent", "unadapted"):
        assert {f"{name}.{kind}" for kind in ("svg", "pdf", "png", "csv", "json")} <= written
    for kind in ("svg", "pdf", "png"):
        again = to_bytes(figure_exponent([summarise(run)]), kind)
        assert (tmp_path / "figures" / f"exponent.{kind}").read_bytes() == again
    drawn = json.loads((tmp_path / "figures" / "curve.json").read_text("utf-8"))
    with (tmp_path / "figures" / "curve.csv").open(encoding="utf-8") as table:
        read = list(csv.DictReader(table))
    assert [[str(v) for v in row.values()] for row in drawn] == [[*row.values()] for row in read]
    assert [row["spent"] for row in drawn] == [p for c in summarise(run).curves() for p in c.spent]


BAD = [
    ("no run", lambda path: path.mkdir(), "is not a run", 2),
    ("no stages", lambda path: write_run(path, [], finish=False), "no decided stage yet", 2),
    ("nothing", lambda path: None, "is not a run", 2),
]


@pytest.mark.parametrize(("name", "make", "says", "code"), BAD)
def test_bad_folders(tmp_path: Path, capsys, name: str, make, says: str, code: int) -> None:
    make(tmp_path / "run")
    with pytest.raises(SystemExit) as stopped:
        main(["report", str(tmp_path / "run")])
    assert stopped.value.code == code
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_command_writes_the_page_into_the_run(tmp_path: Path, capsys) -> None:
    folder = write_run(tmp_path / "run", world(0.0, 1, stages=5, seeds=2))
    with pytest.raises(SystemExit) as stopped:
        main(["report", str(folder)])
    assert stopped.value.code == 0
    assert str(folder / "report.html") in capsys.readouterr().out
    assert (folder / "report.html").read_text("utf-8") == page([folder])
    (folder / "figures").mkdir()
    (folder / "figures" / "curve.pdf").write_bytes(b"not a record")
    with pytest.raises(SystemExit) as stopped:
        main(["verify", str(folder)])
    assert stopped.value.code == 0


def test_command_says_in_json_what_it_wrote(tmp_path: Path, capsys) -> None:
    folder = write_run(tmp_path / "run", world(0.0, 1, stages=5, seeds=2))
    with pytest.raises(SystemExit) as stopped:
        main(["report", str(folder), "--figures", str(tmp_path / "figures"), "--json"])
    assert stopped.value.code == 0
    found = json.loads(capsys.readouterr().out)
    assert found["page"] == str(folder / "report.html")
    assert sorted(found["files"]) == sorted(str(f) for f in (tmp_path / "figures").iterdir())


@pytest.mark.slow
def test_the_page_alone_repeats_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its script, taken off the page by a browser's rules, with nothing left of the run."""
    monkeypatch.chdir(tmp_path)
    tiny(seeds=3).run("run", Inline())
    blocks = re.findall(r"<pre>(.*?)</pre>", page(["run"]), re.DOTALL)
    (script,) = [html.unescape(block) for block in blocks if "experiment.run" in block]
    before = Path("run/result.json").read_bytes()
    shutil.rmtree("run")
    exec(compile(script, "page", "exec"), {})
    assert Path("runs/again/result.json").read_bytes() == before


def test_powers_are_raised_and_all_else_escaped() -> None:
    shown = _raised('T^3 and T^(3 to 4.2); <b> "T^x"')
    assert shown.startswith("T<sup>3</sup> and T<sup>3 to 4.2</sup>; &lt;b&gt; ")
    assert "T^x" in shown
