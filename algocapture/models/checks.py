"""Checks of fields: a ValueError names the field, shows the value and says what is allowed."""

from __future__ import annotations

import math
from collections.abc import Iterable


def check_integer(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")


def check_number(name: str, value: object, least: float, *, above: bool = False) -> None:
    """A finite number >= least, or > least when `above`."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and math.isfinite(value) and (value > least or (value == least and not above)):  # type: ignore[arg-type,operator]
        return
    raise ValueError(
        f"{name} must be a finite number {'>' if above else '>='} {least:g}, got {value!r}"
    )


def check_choice(name: str, value: object, choices: Iterable[object]) -> None:
    choices = tuple(choices)
    if value not in choices:
        raise ValueError(
            f"{name} must be one of {', '.join(repr(c) for c in choices)}; got {value!r}"
        )


def check_bool(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}")
