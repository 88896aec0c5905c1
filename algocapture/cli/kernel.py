"""`algocapture kernel`: Gram matrices of an infinite-width transformer, in tiles that resume."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from rich.progress import track

from algocapture.cli.output import console
from algocapture.config import difference, digest, to_json
from algocapture.kernels import Estimate, InfiniteTransformer
from algocapture.rng import Seed
from algocapture.store import files
from algocapture.types import torch_generator

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
@click.option("--rtol", default=0.01, show_default=True, help="Relative error of every tile.")
@click.option("--samples", default=1024, show_default=True, help="Draws before the first look.")
@click.option("--limit", default=1_000_000, show_default=True, help="Most draws of a tile.")
@click.option("--tile", default=64, show_default=True, help="Inputs in a tile's side.")
@click.option("--seed", default=0, show_default=True)
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
    **fields: Any,
) -> None:
    """Gram between arrays (P, T, d) in X1 and X2 (or X1 alone), with its standard errors.

    Finished tiles are kept beside OUT: the same command continues after a stop. A Gram of one
    tile is positive semi-definite; several tiles have draws of their own.
    """
    if tile < 1:
        raise click.UsageError(f"--tile = {tile}: expected at least 1 input")
    infinite = InfiniteTransformer(**fields)
    first = load(x1)
    second = None if x2 is None else load(x2)
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
    folder = Path(f"{out}.tiles")
    enter(folder, settings)
    other = first if second is None else second
    work = tiles(len(first), len(other), tile, second is None)
    for rows, columns in track(work, "tiles", console=console(), transient=True):
        path = folder / name_of(rows, columns)
        if path.exists():
            continue
        right = None if second is None and rows == columns else other[columns]
        files.write_atomic(path, packed(estimated(infinite, settings, first[rows], right, path)))
    assemble(out, folder, work, second is None, settings)
    console().print(f"{out}: {kind} of {len(first)} x {len(other)}")


def estimated(
    infinite: InfiniteTransformer,
    settings: dict[str, Any],
    left: torch.Tensor,
    right: torch.Tensor | None,
    path: Path,
) -> Estimate:
    """One tile, from draws of its own."""
    kind = settings["kind"]
    start = infinite.estimate(
        left,
        right,
        samples=settings["samples"],
        generator=torch_generator(Seed(settings["seed"]).child("tile", path.name)),
        kinds=[kind],
    )
    return start.until(settings["rtol"], settings["limit"])[kind]


def name_of(rows: slice, columns: slice) -> str:
    return f"{rows.start}-{columns.start}.npz"


def load(path: Path) -> torch.Tensor:
    """An array without pickles, floating."""
    try:
        array = np.load(path, allow_pickle=False)
    except ValueError as error:
        raise click.UsageError(f"{path} is not a .npy array: {error}") from error
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        raise click.UsageError(f"{path} holds no array of numbers")
    return torch.from_numpy(array if array.dtype == np.float32 else array.astype(np.float64))


def fingerprint(x: torch.Tensor) -> str:
    array = x.numpy()
    return digest([list(array.shape), str(array.dtype), array.tobytes().hex()])


def enter(folder: Path, settings: dict[str, Any]) -> None:
    """Begin or continue a folder of tiles."""
    held = folder / "settings.json"
    if held.exists():
        changes = difference(json.loads(held.read_text("utf-8")), settings)
        if changes:
            raise click.UsageError(
                f"{folder} holds tiles of another Gram ({'; '.join(changes)}): remove it, or "
                "choose another --out"
            )
        return
    files.make_folder(folder)
    files.write_atomic(held, json.dumps(settings, indent=2).encode())


def tiles(rows: int, columns: int, tile: int, symmetric: bool) -> list[tuple[slice, slice]]:
    """The tiles to compute: of a symmetric Gram those on and above the diagonal."""
    return [
        (slice(i, min(i + tile, rows)), slice(j, min(j + tile, columns)))
        for i in range(0, rows, tile)
        for j in range(i if symmetric else 0, columns, tile)
    ]


def packed(estimate: Estimate) -> bytes:
    buffer = io.BytesIO()
    np.savez(
        buffer,
        value=estimate.value.numpy(),
        stderr=estimate.stderr.numpy(),
        draws=np.int64(estimate.draws),
        sampler=np.str_(estimate.sampler),
        biases=np.array(estimate.biases, dtype=np.str_),
    )
    return buffer.getvalue()


def assemble(
    out: Path,
    folder: Path,
    work: list[tuple[slice, slice]],
    symmetric: bool,
    settings: dict[str, Any],
) -> None:
    """One file of all tiles; the tiles go when it is there."""
    shape = (work[-1][0].stop, work[-1][1].stop)
    arrays = {"value": np.empty(shape), "stderr": np.empty(shape), "draws": np.empty(shape)}
    biases: set[str] = set()
    for rows, columns in work:
        with np.load(folder / name_of(rows, columns), allow_pickle=False) as part:
            for name, whole in arrays.items():
                whole[rows, columns] = part[name]
            biases |= set(part["biases"].tolist())
    if symmetric:  # the diagonal tiles are symmetric, the ones below it are still to be filled
        for rows, columns in work:
            for whole in arrays.values():
                whole[columns, rows] = whole[rows, columns].T
    buffer = io.BytesIO()
    np.savez(
        buffer,
        value=arrays["value"],
        stderr=arrays["stderr"],
        draws=arrays["draws"].astype(np.int64),
        biases=np.array(sorted(biases), dtype=np.str_),
        settings=np.str_(json.dumps(settings)),
    )
    files.write_atomic(out, buffer.getvalue())
    for name in files.names(folder):
        files.remove(folder / name)
    folder.rmdir()
