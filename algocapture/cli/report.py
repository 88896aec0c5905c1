"""`algocapture report`: runs as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from algocapture.cli.output import print_json
from algocapture.cli.text import echo
from algocapture.report import (
    PAGE,
    Summary,
    summarise,
    summarise_sweep,
    write_figures,
    write_page,
)
from algocapture.report.together import is_pac
from algocapture.store import RunFolder, StoreError
from algocapture.store.sweep import sweep_runs


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path),
                metavar="DIR [DIR ...]")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path),
              help="The page's file [DIR/report.html; of several runs ./report.html].")  # fmt: skip
@click.option("--figures", type=click.Path(path_type=Path),
              help="Also write the figures as SVG, PDF and PNG, and their data, here.")  # fmt: skip
@click.option("--axes", type=click.Choice(["log", "linear"]), default="log", show_default=True,
              help="Of the sizes in the figure of P/P0.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="As JSON: the files written.")
def report(
    folders: tuple[Path, ...],
    out: Path | None,
    figures: Path | None,
    axes: Literal["log", "linear"],
    as_json: bool,
) -> None:
    """Write one self-contained HTML page about the run in DIR; several, or a sweep, are compared.

    Runs need not be finished, and the page is made for one seed too: it then says why there is
    no verdict.
    """
    if any(studies := [_is_study(folder) for folder in folders]):
        if not all(studies) or out is not None or figures is not None:
            raise StoreError("a study's page and figures are written in its folder, by themselves")
        for folder in folders:
            _study(folder, as_json)
        return
    summaries = [s for folder in folders for s in _summaries(folder)]
    if out is None:
        out = folders[0] / PAGE if len(folders) == 1 else Path(PAGE)
    page = write_page(summaries, out, axes)
    if not as_json:
        echo(f"page: {page}")
    written = [] if figures is None else write_figures(summaries, figures, axes)
    if as_json:
        print_json({"page": str(page), "files": [str(file) for file in written]})
    elif written:
        echo(f"figures: {len(written)} files in {figures}")


def _summaries(folder: Path) -> list[Summary]:
    if not sweep_runs(folder):
        return [summarise(folder)]
    return [s for s in summarise_sweep(folder) if not is_pac(s)]  # a replication has no curve


def _is_study(folder: Path) -> bool:
    return not sweep_runs(folder) and RunFolder(folder).is_study


def _study(folder: Path, as_json: bool) -> None:
    # Imported here: what a study's rows say is in the study, which needs torch; runs do not.
    from algocapture.cli.studying import redraw

    redraw(RunFolder(folder), as_json)
