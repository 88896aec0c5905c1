"""What must be the same on the driver and on all workers for the same results."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib import metadata
from pathlib import Path

import algocapture

Stamp = dict[str, str]


@cache
def stamp() -> Stamp:
    """Versions, and a digest of the sources: two checkouts of one version may differ."""
    digest = hashlib.sha256()
    root = Path(algocapture.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    found = {"algocapture": algocapture.__version__, "source": digest.hexdigest()[:12]}
    found |= {name: metadata.version(name) for name in ("torch", "numpy")}
    return found | {"python": platform.python_version()}


def discrepancy(here: Stamp, there: Stamp) -> str:
    """Where they differ, in words; empty if nowhere."""
    differing = [name for name in here if there.get(name) != here[name]]
    return "; ".join(f"{n} {there.get(n, 'none')} there, {here[n]} here" for n in differing)
