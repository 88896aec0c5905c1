"""Arrays of numpy's own formats, read from files that anybody may have made.

Nothing is unpickled, no header is believed beyond the bytes that are there, nothing is unpacked.
"""

from __future__ import annotations

import io
import math
import zipfile
from pathlib import Path

import numpy as np

import algocapture.store.files as files
from algocapture.store.files import StoreError

MOST_ARRAYS = 64  # in an archive
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_npy(path: Path) -> np.ndarray:
    """The array of numbers in a .npy file. The name may be a link; a pipe is refused."""
    return _decode(_read(path), path, "biuf")


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of numbers and texts in an archive as `numpy.savez` writes it."""
    try:
        parts = _members(path, _read(path))
    except StoreError:
        raise
    except Exception as error:  # a forged directory leads zipfile astray in many ways
        raise StoreError(f"{path} is no archive of arrays: {error}") from error
    return {n.removesuffix(".npy"): _decode(part, path, "biufU") for n, part in parts.items()}


def _members(path: Path, data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        if len(members) > MOST_ARRAYS or any(_packed(member) for member in members):
            raise StoreError(f"{path}: at most {MOST_ARRAYS} arrays, none of them compressed")
        return {member.filename: archive.read(member) for member in members}


def _read(path: Path) -> bytes:
    return files.read(Path(path).resolve(), files.memory())


def _packed(member: zipfile.ZipInfo) -> bool:
    """Only what is stored as it is takes no more memory than the file."""
    stored = member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & 1
    return not stored or member.file_size != member.compress_size


def _decode(data: bytes, path: Path, kinds: str) -> np.ndarray:
    buffer = io.BytesIO(data)
    try:
        shape, fortran, dtype = _HEADERS[np.lib.format.read_magic(buffer)](buffer)
    except Exception as error:  # a literal is parsed there, which fails in many ways
        raise StoreError(f"{path} is not a .npy array: its header cannot be read") from error
    if dtype.kind not in kinds or dtype.hasobject:
        raise StoreError(f"{path} holds {str(dtype)[:40]!r}, expected numbers")
    rest = len(data) - buffer.tell()
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != rest:
        raise StoreError(f"{path} is not a .npy array: {rest} bytes do not make up {dtype} {shape}")
    flat = np.frombuffer(data, dtype, offset=buffer.tell()) if rest else np.empty(0, dtype)
    return flat.reshape(shape, order="F" if fortran else "C").copy()
