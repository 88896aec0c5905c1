"""`algocapture tile`: one tile of a Gram in this process. Launchers call it; people need not."""

from __future__ import annotations

from pathlib import Path

import click
import torch

from algocapture.cli.tiling import Tiles
from algocapture.launch import connect


@click.command(hidden=True)
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("number", type=int)
@click.argument("index", type=int)
def tile(folder: Path, number: int, index: int) -> int:
    """Bring tile INDEX of the Gram in FOLDER through round NUMBER."""
    connect()
    torch.set_num_threads(1)
    return Tiles(folder).measure(number, index)
