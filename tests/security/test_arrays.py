"""Arrays from files of any origin: what numpy wrote is read, all else is one StoreError."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algocapture.store import StoreError
from algocapture.store.arrays import read_npy, read_npz
from tests.security.hostile import complaint

GOOD = [
    np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.zeros((0, 3)),
    np.array(2.5),
    np.arange(5, dtype=">i4"),
    np.array([True, False]),
]


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.parametrize("array", GOOD, ids=range(len(GOOD)))
def test_what_numpy_wrote_is_read(tmp_path: Path, array: np.ndarray) -> None:
    (tmp_path / "x.npy").write_bytes(npy(array))
    read = read_npy(tmp_path / "x.npy")
    assert read.dtype == array.dtype
    np.testing.assert_array_equal(read, array)
    np.savez(tmp_path / "x.npz", a=array, b=np.array(["one", "two"]))
    both = read_npz(tmp_path / "x.npz")
    np.testing.assert_array_equal(both["a"], array)
    assert both["b"].tolist() == ["one", "two"]


def header(text: str, version: int = 1, body: bytes = b"") -> bytes:
    data = text.encode("latin1")
    size = struct.pack("<H" if version == 1 else "<I", len(data))
    return b"\x93NUMPY" + bytes([version, 0]) + size + data + body


def claims(shape: str, descr: str = "'<f8'") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}\n"


HOSTILE = {
    "empty": b"",
    "a pickle": b"\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x04true\x94\x85\x94R.",
    "terabytes": header(claims("(1099511627776,)")),
    "more than 2**64": header(claims("(4294967296, 4294967296, 4294967296)")),
    "negative": header(claims("(-8,)")),
    "two negatives": header(claims("(-1, -1)"), body=bytes(8)),
    "of zero-byte items": header(claims("(1099511627776,)", "'<V0'")),
    "huge texts": header(claims("(1,)", "'<U1000000000'")),
    "objects": header(claims("(1,)", "'|O'"), body=bytes(8)),
    "a structure": header(claims("(1,)", "[('a', '<f8')]"), body=bytes(8)),
    "objects in a structure": header(claims("(1,)", "[('a', '|O')]"), body=bytes(8)),
    "nested": header("(" * 9000),
    "signs": header("-" * 9000 + "1"),
    "a call": header("__import__('os').system('true')"),
    "header of 4 GB": b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}",
    "version 9": header(claims("(1,)"), version=9, body=bytes(8)),
    "cut short": npy(np.arange(100.0))[:-1],
    "too long": npy(np.arange(100.0)) + b"x",
    "an archive": b"PK\x05\x06" + bytes(18),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_arrays(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(StoreError, match=r"x\.npy"):
        read_npy(path)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("value.npy", HOSTILE[name])
    with pytest.raises(StoreError, match=r"x\.npz"):
        read_npz(tmp_path / "x.npz")


def archives(folder: Path) -> dict[str, Path]:
    """Archives that numpy would unpack."""
    made = {}
    for name, packed, number in (("bomb", zipfile.ZIP_DEFLATED, 1), ("many", 0, 1000)):
        made[name] = folder / f"{name}.npz"
        with zipfile.ZipFile(made[name], "w", packed) as archive:
            for i in range(number):
                archive.writestr(f"{i}.npy", npy(np.zeros(100_000 if packed else 1)))
    made["lies"] = folder / "lies.npz"
    np.savez(made["lies"], a=np.zeros(4))
    data = bytearray(made["lies"].read_bytes())
    place = data.index(b"PK\x01\x02") + 24  # the central directory's uncompressed size
    data[place : place + 4] = b"\xfe\xff\xff\xff"
    made["lies"].write_bytes(data)
    made["wrong sum"] = folder / "sum.npz"
    made["wrong sum"].write_bytes(bytes(data).replace(bytes(32), b"x" * 32))
    return made


@pytest.mark.parametrize("name", ["bomb", "many", "lies", "wrong sum"])
def test_hostile_archives(tmp_path: Path, name: str) -> None:
    path = archives(tmp_path)[name]
    with pytest.raises(StoreError, match=path.name):
        read_npz(path)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_changed_bytes_are_read_or_refused(tmp_path_factory, data: st.DataObject) -> None:
    folder = tmp_path_factory.getbasetemp()
    buffer = io.BytesIO()
    np.savez(buffer, a=np.arange(3.0), b=np.array(["x"]))
    whole = data.draw(st.sampled_from([npy(GOOD[0]), buffer.getvalue()]))
    changed = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(changed) - 1))
        changed[place : place + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=6))
    path = folder / "changed"
    path.write_bytes(changed)
    for read in (read_npy, read_npz):
        try:
            read(path)
        except StoreError:
            continue


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_header_is_read_or_refused(tmp_path_factory, text: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(header(text.decode("latin1"), body=bytes(8)))
    try:
        read_npy(path)
    except StoreError:
        return


def test_kernel_meets_hostile_arrays(tmp_path: Path) -> None:
    """No traceback, no hang: a pipe, a folder of tiles that somebody else made."""
    x, out = tmp_path / "x.npy", tmp_path / "out.npz"
    for name in ("terabytes", "objects", "signs"):
        x.write_bytes(HOSTILE[name])
        assert complaint("kernel", x, "-o", out) is None
        assert not out.exists()
    os.mkfifo(tmp_path / "pipe")
    assert complaint("kernel", tmp_path / "pipe", "-o", out) is None
    np.save(x, np.ones((2, 3, 4), np.float32))
    tiles = tmp_path / "out.npz.tiles"
    tiles.mkdir()
    for settings_ in (b"[" * 100_000, b'{"a": 1}', b"\xff", b"NaN"):
        (tiles / "settings.json").write_bytes(settings_)
        assert complaint("kernel", x, "-o", out) is None
        assert not out.exists()
