"""`algocapture fetch`: the folder of a run from the URL that it is published to."""

from __future__ import annotations

from pathlib import Path

import click

from algocapture.cli.text import echo
from algocapture.experiment.publishing import fetch as fetch_run


@click.command()
@click.argument("url")
@click.argument("folder", type=click.Path(path_type=Path))
def fetch(url: str, folder: Path) -> None:
    """Make FOLDER the run that is published at URL, as far as it is; again, to bring it up to date.

    Every object's hash is checked. `resume FOLDER --publish URL` continues an unfinished run.
    """
    finished = fetch_run(url, folder, lambda line: echo(line, err=True))
    echo(f"{folder}: {'finished' if finished else 'not finished'}")
