"""`algocapture kernel`: Gram matrices of an infinite-width transformer, in tiles that resume."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from rich.progress import Progress

from algocapture.cli.launching import Asked, launching
from algocapture.cli.output import Plain, print_json
from algocapture.cli.text import echo
from algocapture.cli.tiling import Tiles, assemble, compute, enter
from algocapture.config import ConfigError, digest, to_json
from algocapture.experiment import UnitsFailed
from algocapture.kernels import InfiniteTransformer
from algocapture.kernels.tile import parts_bytes
from algocapture.launch import DONE, FAILED, INTERRUPTED
from algocapture.store.arrays import read_npy
from algocapture.store.lock import Lock

TILE = (sys.executable, "-P", "-m", "algocapture", "tile")  # the command of a worker
MEMORY = 2**32  # bytes that a tile's parts may take
NPY = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("x1", type=NPY)
@click.argument("x2", type=NPY, required=False)
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="A .npz file.")
@click.option("--kind", type=click.Choice(["nngp", "ntk"]), default="nngp", show_default=True)
@click.option("--depth", default=1, show_default=True)
@click.option("--activation", default="relu", show_default=True)
@click.option("--weight-var", default=1.0, show_default=True)
@click.option("--bias-var", default=0.0, show_default=True)
@click.option("--causal", is_flag=True)
@click.option("--output-projection", is_flag=True, help="With W_O: the NTK's first term doubles.")
@click.option("--readout", type=click.Choice(["last", "mean"]), default="last", show_default=True)
@click.option(
    "--rtol", default=0.01, show_default=True, help="Relative error [at depth > 1 of every tile]."
)
@click.option(
    "--samples",
    default=1024,
    show_default=True,
    help="Draws before the first look; then they double.",
)
@click.option("--limit", default=1_000_000, show_default=True, help="Most draws.")
@click.option("--tile", default=64, show_default=True, help="Inputs in a tile's side.")
@click.option("--seed", default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="As JSON: what was written.")
@launching
def kernel(
    x1: Path,
    x2: Path | None,
    out: Path,
    kind: str,
    rtol: float,
    samples: int,
    limit: int,
    tile: int,
    seed: int,
    as_json: bool,
    asked: Asked,
    **fields: Any,
) -> int:
    """Gram between arrays (P, T, d) in X1 and X2 (or X1 alone), with its standard errors.

    Finished tiles are kept beside OUT: the same command continues after a stop. At depth 1 all
    tiles have the same draws, so that the whole is positive semi-definite and does not depend on
    the launcher; beyond, each tile has draws of its own.
    """
    if tile < 1:
        raise click.UsageError(f"--tile = {tile}: expected at least 1 input")
    infinite = InfiniteTransformer(**fields)
    first = load(x1)
    second = None if x2 is None else load(x2)
    if second is not None and second.dtype != first.dtype:
        raise click.UsageError(
            f"{x1} holds {first.dtype}, {x2} {second.dtype}: convert one of them"
        )
    # Settings as they enter the folder of tiles: another Gram never continues this one.
    settings = {
        "kernel": to_json(infinite),
        "kind": kind,
        "rtol": rtol,
        "samples": samples,
        "limit": limit,
        "tile": tile,
        "seed": seed,
        "x1": fingerprint(first),
        "x2": None if second is None else fingerprint(second),
    }
    other = first if second is None else second
    settings["shape"] = [len(first), len(other)]
    _check_memory(tile, first.shape[1] if first.ndim == 3 else 1, infinite.readout)
    folder = Path(f"{out}.tiles")
    enter(folder, settings, {"x1": first} | ({} if second is None else {"x2": second}))
    with Lock(folder, notify=partial(echo, err=True)):
        return _go(Tiles(folder), out, asked, as_json)


def _go(held: Tiles, out: Path, asked: Asked, as_json: bool) -> int:
    if asked.publish is not None:
        raise ConfigError(f"--publish {asked.publish}: a Gram's tiles are kept beside OUT alone")
    launcher = asked.choose(len(held.work), {"cpu"}, several="inline")
    with Progress(console=Plain(stderr=True), transient=True) as progress:
        bar = progress.add_task("tiles", total=None)

        def watch(unit: str, event: dict[str, Any]) -> None:
            if event.get("state") == "ended":
                progress.update(bar, advance=1, description=unit)

        try:
            number = compute(held, launcher, TILE, watch)
        except UnitsFailed as error:
            echo(f"Error: {error}", err=True)
            return FAILED
    if number is None:
        echo("Stopped; finished tiles are kept. The same command continues", err=True)
        return INTERRUPTED
    assemble(out, held, number)
    rows, columns = held.settings["shape"]
    kind = held.settings["kind"]
    if as_json:
        print_json({"out": str(out), "kind": kind, "shape": [rows, columns]})
    else:
        echo(f"{out}: {kind} of {rows} x {columns}")
    return DONE


def _check_memory(tile: int, tokens: int, readout: str) -> None:
    if (needed := parts_bytes(tile, tokens, readout)) > MEMORY:
        raise click.UsageError(
            f"--tile = {tile}: a tile with readout {readout!r} would take {needed / 1e9:.1f} GB; "
            "choose a smaller one"
        )


def load(path: Path) -> torch.Tensor:
    """An array, floating."""
    array = read_npy(path)
    return torch.from_numpy(array if array.dtype == np.float32 else array.astype(np.float64))


def fingerprint(x: torch.Tensor) -> str:
    array = x.numpy()
    return digest([list(array.shape), str(array.dtype), array.tobytes().hex()])
