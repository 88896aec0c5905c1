"""How verbs print: text in colour where the terminal has it, JSON for programs."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.console import Console


def console() -> Console:
    """Standard output; no colour in a pipe or under NO_COLOR; text is text, never markup."""
    return Console(highlight=False, markup=False)


def print_json(data: Any) -> None:
    click.echo(json.dumps(data, indent=2, allow_nan=False))
