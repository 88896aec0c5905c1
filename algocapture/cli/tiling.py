"""A Gram's tiles as units of work: settings, one file a tile and round, the assembled whole.

Rounds double the draws of all tiles at once until the whole Gram's relative error is small enough,
so that all tiles have the same draws. Only the folder of tiles connects driver and workers.
"""

from __future__ import annotations

import io
import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch

from algocapture.config import ConfigError, difference, digest, from_json
from algocapture.experiment import UnitsFailed
from algocapture.kernels import InfiniteTransformer
from algocapture.kernels.tile import PARTS, Parts, Tile, joined
from algocapture.launch import DONE, INTERRUPTED, Emit, Launcher, Stop, Unit
from algocapture.launch.base import Watch
from algocapture.rng import Seed
from algocapture.store import StoreError, files, records
from algocapture.types import torch_generator

_TILE = re.compile(r"round-(\d{2,4})-tile-\d{6,9}", re.ASCII)

FIELDS = {"kernel", "kind", "rtol", "samples", "limit", "tile", "seed", "x1", "x2", "shape"}
Settings = dict[str, Any]
Place = tuple[slice, slice]


def tiles(rows: int, columns: int, tile: int, symmetric: bool) -> list[Place]:
    """The tiles to compute: of a symmetric Gram those on and above the diagonal."""
    return [
        (slice(i, min(i + tile, rows)), slice(j, min(j + tile, columns)))
        for i in range(0, rows, tile)
        for j in range(i if symmetric else 0, columns, tile)
    ]


def enter(folder: Path, settings: Settings, arrays: dict[str, torch.Tensor]) -> None:
    """Begin or continue a folder of tiles; the inputs are copied into it."""
    files.refuse_link(folder)
    held = folder / "settings.json"
    if held.exists():
        if changes := difference(records.parse(files.read(held), held), settings):
            raise click.UsageError(
                f"{folder} holds tiles of another Gram ({'; '.join(changes)}): remove it, or "
                "choose another --out"
            )
        return
    files.make_folder(folder)
    for name, array in arrays.items():
        data = {name: array.numpy()}
        records.write_tensors(folder / name, data, None, place=name, run=digest(settings))
    files.write_atomic(held, json.dumps(settings, indent=2).encode())


def _settings(path: Path) -> Settings:
    held: Settings = records.parse(files.read(path), path)
    if not isinstance(held, dict) or not held.keys() >= FIELDS:
        raise StoreError(f"{path} is no description of a Gram")
    return held


class Tiles:
    """A folder of tiles, as driver and workers see it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings: Settings = _settings(folder / "settings.json")
        self.run = digest(self.settings)
        kernel = from_json(self.settings["kernel"])
        if not isinstance(kernel, InfiniteTransformer):
            raise StoreError(f"{folder}/settings.json is no description of a Gram")
        self.kernel = kernel
        self.symmetric = self.settings["x2"] is None

    @property
    def work(self) -> list[Place]:
        """All tiles, in the order in which they are summed."""
        rows, columns = self.settings["shape"]
        return tiles(rows, columns, self.settings["tile"], self.symmetric)

    def drawn(self, number: int) -> tuple[int, int]:
        """The draws of a part before a round, and in it: each round doubles what there is."""
        heads = len(self.kernel.scales)
        first = -(-self.settings["samples"] // (PARTS * heads)) * heads
        return (0, first) if number == 0 else (first << (number - 1), first << (number - 1))

    def measure(self, number: int, index: int) -> int:
        """Bring one tile through one round; an exit code."""
        rows, columns = self.work[index]
        left, right = self._inputs("x1")[rows], self._inputs("x1" if self.symmetric else "x2")
        other = None if self.symmetric and rows == columns else right[columns]
        if self.kernel.depth == 1:
            arrays, body = self._together(number, index, left, other)
        else:
            arrays, body = self._alone(left, other, f"{rows.start}-{columns.start}.npz")
        place = self._place(number, index)
        records.write_tensors(self.folder / place, arrays, body, place=place, run=self.run)
        return DONE

    def _together(
        self, number: int, index: int, left: torch.Tensor, right: torch.Tensor | None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """From the draws that all tiles have."""
        tile = Tile.of(self.kernel, left, right, self.settings["kind"])
        parts, draws = self._parts(tile, number, index), PARTS * sum(self.drawn(number))
        estimate = tile.estimate(parts, draws)
        arrays = {k: v.numpy() for k, v in parts.items()}
        arrays |= {"value": estimate.value.numpy(), "stderr": estimate.stderr.numpy()}
        return arrays, {"draws": draws, "biases": list(estimate.biases)}

    def _parts(self, tile: Tile, number: int, index: int) -> Parts:
        """The draws of this round added to those before, which are made anew if they are lost."""
        before, more = self.drawn(number)
        new = tile.draw(Seed(self.settings["seed"]).child("draw"), before, more)
        if number == 0:
            return new
        try:
            held = self.read(number - 1, index)[0]
            old: Parts = {k: torch.from_numpy(held[k]) for k in new}
        except StoreError:
            old = self._parts(tile, number - 1, index)
        return joined(old, before, new, more)

    def _alone(
        self, left: torch.Tensor, right: torch.Tensor | None, name: str
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Beyond depth 1 a tile has draws of its own, and its own error decides."""
        generator = torch_generator(Seed(self.settings["seed"]).child("tile", name))
        kind = self.settings["kind"]
        start = self.kernel.estimate(
            left, right, samples=self.settings["samples"], generator=generator, kinds=[kind]
        )
        found = start.until(self.settings["rtol"], self.settings["limit"])[kind]
        arrays = {"value": found.value.numpy(), "stderr": found.stderr.numpy()}
        return arrays, {"draws": found.draws, "biases": list(found.biases)}

    def read(self, number: int, index: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        place = self._place(number, index)
        return records.read_tensors(self.folder / place, place=place, run=self.run)

    def begun(self) -> int:
        """The last round of which there is a tile; none is beyond what the limit allows."""
        found = map(_TILE.fullmatch, files.names(self.folder))
        rounds = [int(match[1]) for match in found if match]
        return max((r for r in rounds if r <= self.settings["limit"].bit_length()), default=0)

    def missing(self, number: int) -> list[int]:
        """The tiles of a round that are not there, or damaged."""
        left = []
        for index in range(len(self.work)):
            try:
                self.read(number, index)
            except StoreError:
                left.append(index)
        return left

    def relative_error(self, number: int) -> float:
        """Of the whole Gram: root mean square standard error over root mean square value."""
        square = error = 0.0
        for index, (rows, columns) in enumerate(self.work):
            arrays, _ = self.read(number, index)
            weight = 2.0 if self.symmetric and rows != columns else 1.0
            square += weight * float(np.square(arrays["value"]).sum())
            error += weight * float(np.square(arrays["stderr"]).sum())
        return (error / square) ** 0.5 if error else 0.0

    def forget(self, number: int) -> None:
        for index in range(len(self.work)):
            files.remove(self.folder / self._place(number, index))

    def _place(self, number: int, index: int) -> str:
        return f"round-{number:02d}-tile-{index:06d}"

    def _inputs(self, name: str) -> torch.Tensor:
        arrays, _ = records.read_tensors(self.folder / name, place=name, run=self.run)
        return torch.from_numpy(arrays[name])


def compute(held: Tiles, launcher: Launcher, argv: tuple[str, ...], watch: Watch) -> int | None:
    """Rounds until the Gram is known well enough: the last one's number; None if stopped."""
    with Stop() as stop:
        number = held.begun()
        while True:
            units = [
                Unit(
                    name=f"round {number} tile {index}",
                    call=partial(_measure, held, number, index),
                    argv=(*argv, str(held.folder.absolute()), str(number), str(index)),
                )
                for index in held.missing(number)
            ]
            outcomes = launcher.run(units, watch, stop)
            if failed := [o for o in outcomes if o.code not in (DONE, INTERRUPTED)]:
                raise UnitsFailed(failed)
            if any(o.code == INTERRUPTED for o in outcomes):
                return None
            if _enough(held, number):
                return number
            number += 1


def _measure(held: Tiles, number: int, index: int, emit: Emit) -> int:
    return held.measure(number, index)


def _enough(held: Tiles, number: int) -> bool:
    """Is the Gram known well enough? An error if no further round may be made."""
    if held.kernel.depth > 1:
        return True
    if number:
        held.forget(number - 1)
    settings, draws = held.settings, PARTS * sum(held.drawn(number))
    error = held.relative_error(number)
    if error > settings["rtol"] and 2 * draws > settings["limit"]:
        raise ConfigError(
            f"--rtol {settings['rtol']:g} is not reached after {draws} draws (now {error:.3g}): "
            f"raise --limit {settings['limit']}, in another --out"
        )
    return error <= settings["rtol"]


def assemble(out: Path, held: Tiles, number: int) -> None:
    """One file of all tiles; the tiles go when it is there."""
    shape = tuple(held.settings["shape"])
    whole = {"value": np.empty(shape), "stderr": np.empty(shape), "draws": np.empty(shape)}
    biases: set[str] = set()
    for index, (rows, columns) in enumerate(held.work):
        arrays, body = held.read(number, index)
        for name, array in whole.items():
            array[rows, columns] = body["draws"] if name == "draws" else arrays[name]
            if held.symmetric:  # the tiles below the diagonal mirror those above
                array[columns, rows] = array[rows, columns].T
        biases |= set(body["biases"])
    buffer = io.BytesIO()
    np.savez(
        buffer,
        value=whole["value"],
        stderr=whole["stderr"],
        draws=whole["draws"].astype(np.int64),
        biases=np.array(sorted(biases), dtype=np.str_),
        settings=np.str_(json.dumps(held.settings)),
    )
    files.write_atomic(out, buffer.getvalue())
    for name in files.names(held.folder):
        files.remove(held.folder / name)
    held.folder.rmdir()
