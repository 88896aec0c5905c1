"""Completion in the shell: verbs, recipes and files at once, options from the verb itself.

Verbs such as `run` import torch, too slow for a key. While the shell asks, a verb is stood in for
by a light command; only a word that begins with a dash loads the verb.
"""

from __future__ import annotations

from collections.abc import Callable

import click
from click.shell_completion import CompletionItem

from algocapture.cli.recipe_files import names

Load = Callable[[], click.Command]


class Light(click.Command):
    """A verb while the shell completes its words."""

    def __init__(self, name: str, load: Load) -> None:
        settings = {"ignore_unknown_options": True, "allow_extra_args": True}
        super().__init__(name, context_settings=settings)
        self.load = load

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if incomplete.startswith("-"):
            return self.load().shell_complete(ctx, incomplete)
        known = names() if self.name == "run" else []
        found = [CompletionItem(name) for name in known if name.startswith(incomplete)]
        return found or [CompletionItem(incomplete, type="file")]


def verbs(known: dict[str, str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(v, help=text) for v, text in known.items() if v.startswith(incomplete)]
