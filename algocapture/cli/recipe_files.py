"""The files of the recipes that come with algocapture. Starts without torch."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import algocapture

PACKAGE = Path(algocapture.__file__).parent / "recipes"


def names() -> list[str]:
    """The recipes by name: "quickstart", "fig1/induction", ..."""
    found = sorted(PACKAGE.rglob("*.py"))
    return [str(path.relative_to(PACKAGE).with_suffix("")) for path in found if path.stem[0] != "_"]


def entry(name: str) -> dict[str, Any]:
    """What a recipe does and takes. Read, not run: listing recipes imports none of them."""
    tree = ast.parse((PACKAGE / f"{name}.py").read_text("utf-8"))
    cost = {"cpu": "not measured", "gpu": "not measured"}
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "COST":
            cost |= ast.literal_eval(node.value)
    about = (ast.get_docstring(tree) or "").partition("\n")[0]
    return {"recipe": name, "about": about, "cost": cost}
