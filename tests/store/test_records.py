"""Every truncation and every byte flip is noticed; canonical bytes round-trip."""

import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from algocapture.store import StoreError, records

PATH = Path("a file")
RECORD = records.encode_record(
    {"size": 8, "looks": [[1, 0.5], [2, 0.25]], "passed": True}, place="p", run="r"
)
ARRAYS = {
    "weight": np.arange(6, dtype=np.float32).reshape(2, 3),
    "scalar": np.array(2.5),
    "state": np.arange(5, dtype=np.uint8),
    "mask": np.array([True, False]),
    "empty": np.zeros((0, 3), np.float32),
    "transposed": np.arange(6, dtype=np.int64).reshape(2, 3).T,
}
TENSORS = records.encode_tensors(ARRAYS, {"sha256": "0" * 64, "step": 3}, place="p", run="r")
KINDS = [(RECORD, records.decode_record), (TENSORS, records.decode_tensors)]


def test_round_trip():
    assert records.decode_record(RECORD, PATH)["body"]["looks"] == [[1, 0.5], [2, 0.25]]
    arrays, envelope = records.decode_tensors(TENSORS, PATH)
    assert envelope["body"] == {"sha256": "0" * 64, "step": 3}
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        np.testing.assert_array_equal(arrays[name], array)


def test_a_checkpoint_is_a_safetensors_file():
    loaded = safetensors.numpy.load(TENSORS)
    np.testing.assert_array_equal(loaded["weight"], ARRAYS["weight"])


def test_equal_content_gives_equal_bytes():
    again = records.encode_tensors(ARRAYS, {"step": 3, "sha256": "0" * 64}, place="p", run="r")
    assert again == TENSORS


@pytest.mark.parametrize(("data", "decode"), KINDS, ids=["record", "checkpoint"])
def test_every_truncation_is_noticed(data, decode):
    for length in range(len(data)):
        with pytest.raises(StoreError, match="damaged"):
            decode(data[:length], PATH)
    with pytest.raises(StoreError, match="damaged"):
        decode(data + b"\n", PATH)


@pytest.mark.parametrize(("data", "decode"), KINDS, ids=["record", "checkpoint"])
def test_a_thousand_byte_flips_are_noticed(data, decode):
    """Every byte once, then random ones up to 1,000: each XORed with a nonzero value."""
    generator = np.random.default_rng(0)
    places = list(range(len(data))) + generator.integers(len(data), size=1000).tolist()
    for place in places[: max(1000, len(data))]:
        flipped = bytearray(data)
        flipped[place] ^= int(generator.integers(1, 256))
        with pytest.raises(StoreError):
            decode(bytes(flipped), PATH)


HOSTILE = [
    b"",
    b"null",
    b"[]",
    b"{}",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b'{"body": NaN, "place": "p", "run": "r", "schema": 1, "sha256": ""}',
    b"9" * 10_000,
    RECORD.replace(b'"schema": 1', b'"schema": 2'),
    RECORD.replace(b'"schema": 1', b'"schema": true'),
    RECORD.replace(b'"run": "r"', b'"run": ["r"]'),
    RECORD.replace(b"{", b'{"body": 1,', 1),
]


@pytest.mark.parametrize("data", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_bytes_end_in_one_message(data):
    for decode in (records.decode_record, records.decode_tensors):
        with pytest.raises(StoreError) as caught:
            decode(data, PATH)
        assert "\n" not in str(caught.value)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_end_in_one_message(data):
    for decode in (records.decode_record, records.decode_tensors):
        with pytest.raises(StoreError):
            decode(data, PATH)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(JSON, st.text(), st.text())
def test_any_json_round_trips(body, place, run):
    data = records.encode_record(body, place=place, run=run)
    assert json.loads(data)["body"] == body
    assert records.decode_record(data, PATH)["body"] == body
    sealed = records.encode_tensors({}, body, place=place, run=run)
    assert records.decode_tensors(sealed, PATH)[1]["body"] == body


@pytest.mark.parametrize("body", [float("nan"), [float("inf")], {"a": object()}, {1, 2}])
def test_what_is_not_json_is_refused(body):
    with pytest.raises(StoreError, match="plain JSON"):
        records.encode_record(body, place="p", run="r")
    with pytest.raises(StoreError, match="plain JSON"):
        records.encode_tensors({}, body, place="p", run="r")
