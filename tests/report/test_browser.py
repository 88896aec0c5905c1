"""The page in a browser, offline: nothing is asked for, nothing is amiss, it fits a telephone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from algocapture.report import page
from algocapture.report.rows import plain
from algocapture.stats import Curve
from tests.report.hostile import FOLDERS, NAMES, TURNED
from tests.report.runs import SESSION, world, write_run

pytestmark = pytest.mark.browser

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
WIDE, NARROW = 1280, 400


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """One browser for all tests of this file; only in CI is it an error that there is none."""
    if BROWSER is None and os.environ.get("CI") != "true":
        pytest.skip("there is no Chromium here")
    assert BROWSER is not None, "CI=true demands the browser tests, and there is no Chromium"
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


class Opened:
    """A page opened in a window of its own, with all that it asked for and complained of."""

    def __init__(self, browser: Any, file: Path, width: int, scheme: str = "light") -> None:
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self.page = browser.new_page(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.goto(file.as_uri())
        self.file = file

    def check(self) -> None:
        assert self.complaints == []
        assert [url for url in self.asked if not url.startswith("data:")] == [self.file.as_uri()]

    def width(self) -> int:
        self.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        found: int = self.page.evaluate("document.documentElement.scrollWidth")
        return found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    one = write_run(folder / "one", world(0.0, 1, stages=12, censored=0.5))
    other = write_run(folder / "other-with-a-long-name-that-has-no-end", world(1.0, 2, stages=9))
    texts = {"one": page([one]), "two": page([one, other])}
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, "utf-8")
    return {name: folder / f"{name}.html" for name in texts}


@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "dark"), (NARROW, "light")])
@pytest.mark.parametrize("name", ["one", "two"])
def test_page_opens_offline(
    chromium: Any, files: dict[str, Path], name: str, width: int, scheme: str
) -> None:
    opened = Opened(chromium, files[name], width, scheme)
    opened.check()
    figures = opened.page.query_selector_all("figure svg")
    assert len(figures) == 5
    for figure in figures:
        box = figure.bounding_box()
        assert figure.is_visible()
        assert box["width"] > 300
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert len(figure.get_attribute("aria-label")) > 20
    assert opened.width() <= width
    opened.page.close()


def test_colours_follow_the_reader(chromium: Any, files: dict[str, Path]) -> None:
    """Text of the page and of its figures stands out from the ground, light and dark."""
    for scheme, darker in (("light", "ink"), ("dark", "paper")):
        opened = Opened(chromium, files["one"], WIDE, scheme)
        ground, ink, label = (
            opened.page.evaluate(f"getComputedStyle(document.querySelector('{where}')).{what}")
            for where, what in (("figure", "backgroundColor"), ("h1", "color"),
                                ("svg text[style*=ink]", "fill"))
        )  # fmt: skip
        assert label == ink
        levels = {"paper": _level(ground), "ink": _level(ink)}
        assert min(levels, key=lambda k: levels[k]) == darker
        assert abs(levels["paper"] - levels["ink"]) > 150
        opened.page.close()


def _level(colour: str) -> float:
    numbers = colour.removeprefix("rgb(").removesuffix(")").split(",")
    return sum(map(float, numbers)) / 3


def test_figures_are_as_wide_as_their_text(chromium: Any, files: dict[str, Path]) -> None:
    """The reader's font is not the one that the figures were laid out with."""
    opened = Opened(chromium, files["two"], NARROW)
    outside = opened.page.evaluate(
        """[...document.querySelectorAll('figure svg')].flatMap(svg => {
             const box = svg.getBoundingClientRect()
             return [...svg.querySelectorAll('text')].map(t => t.getBoundingClientRect())
               .filter(t => t.left < box.left - 1 || t.right > box.right + 1)
           }).length"""
    )
    assert outside == 0
    opened.page.close()


def test_hostile_names_are_text(chromium: Any, tmp_path: Path) -> None:
    names = [*NAMES, *TURNED]
    curves = [Curve([50, 60, 72], [9000, 9500, 9900]) for _ in range(2)]
    path = write_run(
        tmp_path / FOLDERS[1],
        curves,
        baselines={name: 0.5 + i / 300 for i, name in enumerate(names)},
        task={"type": "user:" + NAMES[0], "names": names}
        | {f"field{i}": name for i, name in enumerate(names)},
        meta=SESSION | {"device": NAMES[4]},
    )
    (tmp_path / "page.html").write_text(page([path]), "utf-8")
    opened = Opened(chromium, tmp_path / "page.html", NARROW)
    opened.check()
    text = opened.page.evaluate("document.body.textContent")
    title = opened.page.title()
    assert [name for name in names if plain(name, 80) not in text] == []
    assert FOLDERS[1] in title
    assert NAMES[0] in opened.page.text_content("h1")
    assert opened.page.evaluate("window.hacked") is None
    assert opened.page.query_selector_all("script, img, iframe, body link, svg [onload]") == []
    assert opened.width() <= NARROW
    opened.page.close()


def test_hostile_folders_are_text(chromium: Any, tmp_path: Path) -> None:
    curves = [Curve([50, 60, 72], [9000, 9500, 9900]) for _ in range(2)]
    runs = [write_run(tmp_path / name, curves[:1]) for name in FOLDERS]
    (tmp_path / "page.html").write_text(page(runs), "utf-8")
    opened = Opened(chromium, tmp_path / "page.html", NARROW)
    opened.check()
    drawn = opened.page.eval_on_selector_all("svg text", "all => all.map(t => t.textContent)")
    assert [n for n in FOLDERS if plain(n) not in {text.strip() for text in drawn}] == []
    assert opened.page.evaluate("window.hacked") is None
    assert opened.width() <= NARROW
    opened.page.close()
