"""The files of the recipes that come with algocapture. Starts without torch."""

from __future__ import annotations

from pathlib import Path

import algocapture

PACKAGE = Path(algocapture.__file__).parent / "recipes"


def names() -> list[str]:
    """The recipes by name: "quickstart", "fig1/induction", ..."""
    found = sorted(PACKAGE.rglob("*.py"))
    return [str(path.relative_to(PACKAGE).with_suffix("")) for path in found if path.stem[0] != "_"]
