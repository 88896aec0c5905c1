"""What a value read from a file must look like before anything is computed with it.

A hash shows damage, not who wrote: records may be made by other software, or by somebody who
means harm. A pattern is a type, a tuple of types or of allowed texts, `[pattern]` for a list, or a
dict of patterns by key, where `ANY` stands for every other key. A key that is missing is no
mismatch: who needs it says so.
"""

from __future__ import annotations

from typing import Any

ANY = ...
MOST = 10**30  # beyond the FLOPs of anything; far below where floats end

Pattern = Any
Number = (int, float)


def mismatch(value: Any, pattern: Pattern, where: str = "") -> str | None:
    """The first place that is not as the pattern says, as "path = value"; None if all is."""
    if isinstance(pattern, dict):
        if not isinstance(value, dict):
            return _say(where, value)
        pairs = ((f"{where}.{k}", held, pattern.get(k, pattern.get(ANY, object)))
                 for k, held in value.items())  # fmt: skip
    elif isinstance(pattern, list):
        if not isinstance(value, list):
            return _say(where, value)
        pairs = ((f"{where}[{i}]", held, pattern[0]) for i, held in enumerate(value))
    else:
        return None if _fits(value, pattern) else _say(where, value)
    return next((bad for w, held, inner in pairs if (bad := mismatch(held, inner, w))), None)


def _fits(value: Any, pattern: Pattern) -> bool:
    if pattern is object:
        return True
    options = pattern if isinstance(pattern, tuple) else (pattern,)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return type(value) in options and abs(value) <= MOST
    return any(value == o if isinstance(o, str) or o is None else type(value) is o for o in options)


def _say(where: str, value: Any) -> str:
    shown = repr(value)
    return f"{where.lstrip('.')} = {shown if len(shown) <= 60 else shown[:57] + '...'}"
