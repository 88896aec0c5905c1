"""The command line: `algocapture VERB ...`."""

from algocapture.cli.app import main

__all__ = ["main"]
