"""How verbs print: text in colour where the terminal has it, JSON for programs."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.text import Text

from algocapture.cli.text import echo, visible


class Plain(Console):
    """A console to which text is text: neither markup nor orders to the terminal."""

    def __init__(self, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False)

    def render_str(self, text: str, **kwargs: Any) -> Text:
        return super().render_str(visible(text), **kwargs)


def console() -> Console:
    """Standard output; no colour in a pipe or under NO_COLOR."""
    return Plain()


def print_json(data: Any) -> None:
    echo(json.dumps(data, indent=2, allow_nan=False))
