"""The code of the pages on kernels runs as printed."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", ["kernels.md", "coming_from_neural_tangents.md"])
def test_the_code_of_a_page_runs(page):
    text = (DOCS / page).read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 2
    names: dict = {}
    for block in blocks:  # one after the other, as a reader would
        exec(compile(block, page, "exec"), names)
