"""The group of verbs: each is one file, imported only when it is called.

To add a verb NAME: a file `cli/NAME.py` with a click command of that name, a line in `VERBS`.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from click.shell_completion import CompletionItem

import algocapture
from algocapture.cli.completion import Light, verbs
from algocapture.cli.text import echo
from algocapture.config import nearest

# Verb -> its line in --help, kept here so that --help imports no verb.
VERBS = {
    "recipes": "List the recipes: the experiments that come with algocapture.",
    "run": "Run a recipe: a capture test that ends in a verdict.",
    "resume": "Continue a run that was stopped at any instant.",
    "verdict": "Judge a run: captured, not captured or undecided, and how sure.",
    "bounds": "What the paper's bounds forbid, for all tasks or beside a run's verdict.",
    "report": "Write one HTML page about a run, or several to compare.",
    "status": "How far a run is.",
    "fetch": "Make the folder of a run that is published at a URL.",
    "eval": "Accuracy against size, without adaptation.",
    "export": "Write a trained model as one safetensors file.",
    "verify": "Check all hashes of a run and rebuild its result.",
    "tasks": "List the tasks: what is to be learnt, with all fields.",
    "kernel": "The Gram of an infinite-width transformer, with standard errors.",
    "show": "Show instances of a task, its labels and its baselines.",
}

EPILOG = (
    "Exit codes: 0 done; 1 failed; 2 usage or bad input; 3 interrupted, and `resume` continues it. "
    "`algocapture VERB --help` explains a verb."
)


HIDDEN = ("work", "tile")  # what launchers call


class Verbs(click.Group):
    """A group that knows its verbs by name and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS and name not in HIDDEN:
            return None
        if ctx.resilient_parsing:  # the shell completes a line
            return Light(name, lambda: self.load(name))
        return self.load(name)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        return verbs(VERBS, incomplete) or super().shell_complete(ctx, incomplete)

    @staticmethod
    def load(name: str) -> click.Command:
        command = getattr(importlib.import_module(f"algocapture.cli.{name}"), name)
        assert isinstance(command, click.Command), f"cli/{name}.py has no command {name!r}"
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in (*VERBS, *HIDDEN):
            raise click.UsageError(f"there is no verb {args[0]!r}{nearest(args[0], VERBS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=Verbs, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(algocapture.__version__, prog_name="algocapture")
def algocapture_command() -> None:
    """Has a neural network captured an algorithm, or does it interpolate its training sizes?"""


RESUMABLE = ("run", "resume")


def _can_resume(args: list[str]) -> bool:
    return bool(args) and args[0] in RESUMABLE


@contextmanager
def _resumable(args: list[str]) -> Iterator[None]:
    """A scheduler may ask a run to end while it still imports torch, or writes its page: nothing
    is lost then, and the exit code says so. In between `launch.Stop` answers."""
    main_thread = threading.current_thread() is threading.main_thread()  # others have no handlers
    heeds = main_thread and _can_resume(args)
    numbers = (signal.SIGTERM, signal.SIGUSR1) if heeds else ()
    before = {n: signal.signal(n, lambda number, frame: os._exit(3)) for n in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main(args: list[str] | None = None) -> Any:
    """Run the command line; errors of ours become one line on stderr."""
    args = sys.argv[1:] if args is None else args
    try:
        with _resumable(args):
            status = algocapture_command.main(args, prog_name="algocapture", standalone_mode=False)
    except click.exceptions.Exit as exit_:
        sys.exit(exit_.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        if _can_resume(args):  # before or after its work, which catches this itself
            fail("interrupted; nothing is lost, and the same command continues", 3)
        fail("interrupted", 1)
    except BrokenPipeError:  # `algocapture ... | head`: nobody reads any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except ValueError as error:
        fail(str(error), 2)
    except OSError as error:
        fail(str(error), 1)
    except RecursionError:
        fail("what was read is nested too deeply", 2)
    except (MemoryError, RuntimeError) as error:
        if not lacks_memory(error):
            raise
        reason = str(error).strip().split("\n")[0]
        fail(f"not enough memory: take fewer instances or a smaller size ({reason})", 1)
    sys.exit(status if isinstance(status, int) else 0)


def lacks_memory(error: Exception) -> bool:
    """Torch's allocators raise RuntimeErrors; its classes are not imported here."""
    named = type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)
    return named or isinstance(error, MemoryError)


def fail(message: str, status: int) -> None:
    echo(f"Error: {message}", err=True)
    sys.exit(status)
