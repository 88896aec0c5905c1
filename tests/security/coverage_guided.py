"""Coverage-guided fuzzing of what reads bytes, with atheris (`pip install atheris`, not needed
otherwise): `python -m tests.security.coverage_guided lock -max_total_time=120`.

Each parser may raise StoreError and nothing else. What is found becomes a case in test_arrays.py,
test_files.py or test_fuzz.py.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["algocapture", "json", "zipfile", "numpy.lib"]):
    import algocapture.store.contents as contents
    import algocapture.store.records as records
    from algocapture.store import StoreError
    from algocapture.store.arrays import read_npy, read_npz
    from algocapture.store.lock import _decode
    from algocapture.store.run import decode_config

HERE = Path(tempfile.mkdtemp(dir="/dev/shm")) / "x"


def of_file(read: Callable[[Path], object]) -> Callable[[bytes], object]:
    def parse(data: bytes) -> object:
        HERE.write_bytes(data)
        return read(HERE)

    return parse


def sealed(data: bytes) -> object:
    """The content of a record with a good hash: what the hash keeps from the mutations above."""
    body = records.parse(data, HERE)
    told = [wrong(body) for wrong in (contents.wrong_stage, contents.wrong_evaluations)]
    with contextlib.suppress(StoreError):
        told.append(decode_config(records.encode_record(body, place="config", run="0"), HERE))
    return told


PARSERS: dict[str, Callable[[bytes], object]] = {
    "record": lambda data: records.decode_record(data, HERE),
    "tensors": lambda data: records.decode_tensors(data, HERE),
    "sealed": sealed,
    "lock": _decode,
    "npy": of_file(read_npy),
    "npz": of_file(read_npz),
}


def main() -> None:
    name = sys.argv.pop(1)

    def one(data: bytes) -> None:
        with contextlib.suppress(StoreError):
            PARSERS[name](data)

    try:
        atheris.Setup(sys.argv, one)
        atheris.Fuzz()
    finally:
        os.unlink(HERE) if HERE.exists() else None
        HERE.parent.rmdir()


if __name__ == "__main__":
    main()
