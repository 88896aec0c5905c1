"""One model as one file that leaves the run: plain safetensors, which any reader of it opens.

Its one metadata entry is a record as in a run's folder, so that damage is noticed here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

import algocapture.store.files as files
import algocapture.store.records as records
from algocapture.store.files import StoreError
from algocapture.store.stages import Body

PLACE = "export"
SUFFIX = ".safetensors"


def write_export(path: Path, arrays: Mapping[str, np.ndarray], body: Body, *, run: str) -> None:
    """Write the weights and what they are; a file that is there is never replaced."""
    if path.suffix != SUFFIX:
        raise StoreError(f"{path}: an export's name ends in {SUFFIX}")
    if path.exists():
        raise StoreError(f"{path} exists: choose another name or remove it")
    files.make_folder(path.parent)
    records.write_tensors(path, arrays, body, place=PLACE, run=run)


def read_export(path: Path) -> tuple[dict[str, np.ndarray], Body]:
    """The weights and what `write_export` was told about them."""
    arrays, envelope = records.decode_tensors(files.read(path, files.memory()), path)
    if envelope["place"] != PLACE or not isinstance(envelope["body"], dict):
        raise records.damaged(path, "it is not an exported model")
    return arrays, envelope["body"]
