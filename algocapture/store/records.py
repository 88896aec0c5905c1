"""Records and checkpoints as bytes, with a SHA-256 that covers every byte.

A record is canonical JSON: `{"body", "place", "run", "schema", "sha256"}`. `place` is its name
in the run's folder and `run` the digest of the run's identity, so that a good file that was
copied from elsewhere is noticed too. Reading re-encodes what was read and compares all bytes.
A checkpoint is a valid safetensors file whose one metadata entry is such a record; its hash is
taken over the whole file with the 64 digits of the hash itself set to zero.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

import algocapture.store.files as files
from algocapture.store.files import StoreError

SCHEMA = 1
MOST_VALUES = 2**24  # in one record: an empty list of 3 bytes takes 64 in memory
MOST_HEADER = 100_000_000  # bytes, as in safetensors itself
_FIELDS = {"body", "place", "run", "schema", "sha256"}
_ZEROS = "0" * 64
_HASH = re.compile(rb'\{\\"sha256\\":\\"([0-9a-f]{64})\\"')
_KEY = "algocapture"


def canonical(value: Any, indent: int | None = 1) -> str:
    """The one text of a JSON value. NaN and infinities are refused: JSON has none."""
    try:
        return json.dumps(value, sort_keys=True, indent=indent, ensure_ascii=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"a record must be plain JSON: {error}") from error


def parse(text: str | bytes, path: Path) -> Any:
    """JSON of any origin: too deep, too many values, NaN and the like are one StoreError."""
    data = text.encode() if isinstance(text, str) else text
    if sum(map(data.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise damaged(path, f"it holds more than {MOST_VALUES:,} values")
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise damaged(path, "it is not JSON") from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def damaged(path: Path, why: str) -> StoreError:
    return StoreError(f"{path} is damaged or not ours: {why}; restore it from a copy or remove it")


def encode_record(body: Any, *, place: str, run: str) -> bytes:
    """The record's text. Encoding is most of what reading a run takes: it is done once, since
    "sha256" is the last of the sorted names."""
    text = canonical({"body": body, "place": place, "run": run, "schema": SCHEMA})
    digest = hashlib.sha256(text.encode("ascii")).hexdigest()
    return (text.removesuffix("\n}") + f',\n "sha256": "{digest}"\n}}\n').encode("ascii")


def decode_record(data: bytes, path: Path) -> dict[str, Any]:
    """The envelope; anything but the very bytes that `encode_record` writes is a StoreError."""
    envelope = parse(data, path)
    _check_envelope(envelope, path)
    sealed = encode_record(envelope["body"], place=envelope["place"], run=envelope["run"])
    if sealed != data:
        raise damaged(path, "its SHA-256 does not match")
    return envelope


def _check_envelope(envelope: Any, path: Path) -> None:
    if not isinstance(envelope, dict) or set(envelope) != _FIELDS:
        raise damaged(path, "it is not a record")
    if type(envelope["schema"]) is not int or envelope["schema"] != SCHEMA:
        raise StoreError(
            f"{path} has schema {str(envelope['schema'])[:20]}, this version reads {SCHEMA}: "
            "use the version of algocapture that wrote it"
        )
    if not isinstance(envelope["place"], str) or not isinstance(envelope["run"], str):
        raise damaged(path, "it is not a record")


def check_place(envelope: Mapping[str, Any], path: Path, *, place: str, run: str) -> None:
    """A file that is whole, but of another run or another name, is not ours."""
    if envelope["run"] != run:
        raise damaged(path, "it belongs to another run")
    if envelope["place"] != place:
        raise damaged(path, f"it was written as {envelope['place']!r}")


def write_record(path: Path, body: Any, *, place: str, run: str) -> None:
    data = encode_record(body, place=place, run=run)
    if len(data) > files.MOST:
        raise StoreError(
            f"{path} would have {len(data):,} bytes, more than the {files.MOST:,} that are read: "
            "run fewer seeds in one folder"
        )
    files.write_atomic(path, data)


def read_record(path: Path, *, place: str, run: str) -> Any:
    envelope = decode_record(files.read(path), path)
    check_place(envelope, path, place=place, run=run)
    return envelope["body"]


def encode_tensors(arrays: Mapping[str, np.ndarray], body: Any, *, place: str, run: str) -> bytes:
    envelope = {"body": body, "place": place, "run": run, "schema": SCHEMA}
    rest = canonical(envelope, indent=None)
    # The hash comes first, at a place that a search of the raw header finds.
    record = f'{{"sha256":"{_ZEROS}",{rest[1:]}'
    plain = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    data = safetensors.numpy.save(plain, metadata={_KEY: record})
    found = _HASH.search(data)
    assert found is not None, "the hash has no place in the header"
    digest = hashlib.sha256(data).hexdigest().encode("ascii")
    return data[: found.start(1)] + digest + data[found.end(1) :]


def decode_tensors(data: bytes, path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the envelope of a checkpoint; every byte is covered by its hash."""
    size = int.from_bytes(data[:8], "little")
    if size > MOST_HEADER:
        raise damaged(path, "it is not a checkpoint of ours")
    found = _HASH.search(data[8 : 8 + min(size, len(data))])
    if found is None:
        raise damaged(path, "it is not a checkpoint of ours")
    start = 8 + found.start(1)
    digest = hashlib.sha256(data[:start])
    digest.update(_ZEROS.encode("ascii"))
    digest.update(memoryview(data)[start + 64 :])
    if digest.hexdigest().encode("ascii") != found[1]:
        raise damaged(path, "its SHA-256 does not match")
    header = parse(data[8 : 8 + size], path)
    try:
        envelope = parse(header["__metadata__"][_KEY], path)
        arrays = safetensors.numpy.load(data)
    except (KeyError, TypeError, ValueError, safetensors.SafetensorError) as error:
        raise damaged(path, "it is not a checkpoint of ours") from error
    _check_envelope(envelope, path)
    return arrays, envelope


def write_tensors(
    path: Path, arrays: Mapping[str, np.ndarray], body: Any, *, place: str, run: str
) -> None:
    files.write_atomic(path, encode_tensors(arrays, body, place=place, run=run))


def read_tensors(path: Path, *, place: str, run: str) -> tuple[dict[str, np.ndarray], Any]:
    arrays, envelope = decode_tensors(files.read(path, files.memory()), path)
    check_place(envelope, path, place=place, run=run)
    return arrays, envelope["body"]
