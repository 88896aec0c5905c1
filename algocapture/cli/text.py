"""Text of folders and files on a terminal: shown, never obeyed."""

from __future__ import annotations

import re

import click

# What a terminal would obey instead of showing, and what turns the text around it; no line feed.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str) -> str:
    """Control characters are spelt out."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def echo(text: str = "", nl: bool = True, err: bool = False) -> None:
    """How verbs print a line."""
    click.echo(visible(text), nl=nl, err=err)
