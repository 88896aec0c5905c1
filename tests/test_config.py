"""Configurations: round trips, pinned digests, differences, --set, and hostile JSON."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, dataclass, field
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algocapture import config
from algocapture.config import (
    ConfigError,
    difference,
    digest,
    from_json,
    register,
    registered,
    replace_field,
    tag,
    to_json,
)


@register
@dataclass(frozen=True)
class Inner:
    rate: float = 0.5
    name: str | None = None
    kind: Literal["a", "b", 3] = "a"


@register
@dataclass(frozen=True)
class Outer:
    count: int = 1
    inner: Inner = Inner()
    flag: bool = False
    sizes: tuple[int, ...] = ()
    pair: tuple[float, str] = (1.0, "x")
    rates: tuple[float, ...] | None = None
    either: int | float = 1
    deeper: Inner | Outer | None = None
    parts: tuple[Inner | Outer, ...] = ()
    computed: int = field(init=False, default=7)


@register
@dataclass(frozen=True)
class Needy:
    must: int

    def __post_init__(self) -> None:
        if self.must < 0:
            raise ValueError(f"must is at least 0, got {self.must}")


@dataclass(frozen=True)
class Unregistered:
    x: int = 1


FINITE = st.floats(allow_nan=False, allow_infinity=False)
INNER = st.builds(
    Inner,
    rate=FINITE | st.integers(-9, 9),
    name=st.none() | st.text(max_size=5),
    kind=st.sampled_from(["a", "b", 3]),
)
OUTER = st.recursive(
    st.builds(
        Outer,
        count=st.integers(),
        inner=INNER,
        flag=st.booleans(),
        sizes=st.lists(st.integers(), max_size=3).map(tuple),
        pair=st.tuples(FINITE | st.integers(-9, 9), st.text(max_size=3)),
        rates=st.none() | st.lists(FINITE | st.integers(-9, 9), max_size=3).map(tuple),
        either=st.integers() | FINITE,
    ),
    lambda below: st.builds(
        Outer,
        deeper=INNER | below,
        parts=st.lists(INNER | below, max_size=2).map(tuple),
    ),
    max_leaves=4,
)


@given(OUTER)
def test_round_trip(value: Outer) -> None:
    text = json.dumps(to_json(value), allow_nan=False)
    again = from_json(json.loads(text))
    assert again == value
    assert type(again) is Outer
    assert digest(again) == digest(value)
    assert to_json(again) == to_json(value)


@given(OUTER, OUTER)
def test_lines_exactly_where_digests_differ(a: Outer, b: Outer) -> None:
    lines = difference(to_json(a), to_json(b))
    assert bool(lines) == (digest(a) != digest(b))
    assert not difference(to_json(a), to_json(a))


def test_pinned_digests() -> None:
    """The identity of a run: never to change for the same configuration."""
    assert digest(Inner()) == "032aa6c7e442bfb540d89be009937bb2dbcc95fb9244a46d9c6587862cb3cf95"
    assert digest(Outer(rates=(1.0,), parts=(Inner(name="é"),))) == (
        "292a6a05e043ee86327359043c47d8f493d129b5b2a9365d317115448bf6c1b3"
    )
    text = '{"kind":"a","name":null,"rate":0.5,"type":"Inner"}'
    assert digest(Inner()) == config.hashlib.sha256(text.encode()).hexdigest()
    assert digest(dict(reversed(to_json(Inner()).items()))) == digest(Inner())


def test_equal_configurations_have_equal_digests() -> None:
    assert digest(Inner(rate=1)) == digest(Inner(rate=1.0)) == digest(Inner(rate=np.float64(1)))
    assert digest(Inner(rate=0.0)) == digest(Inner(rate=-0.0))
    assert digest(Outer(rates=(1, 2))) == digest(Outer(rates=(1.0, 2.0)))
    assert digest(Outer(pair=(3, "x"))) == digest(Outer(pair=(3.0, "x")))


def test_only_registered_classes_have_plain_tags() -> None:
    assert tag(Inner()) == "Inner"
    assert tag(Unregistered()) == "user:Unregistered"
    assert registered(Inner) == {"Inner": Inner}
    with pytest.raises(AssertionError, match="not frozen"):
        register(dataclass(type("Loose", (), {})))
    with pytest.raises(AssertionError, match="two classes are called Inner"):
        register(dataclass(frozen=True)(type("Inner", (), {})))
    with pytest.raises(FrozenInstanceError):
        Inner().rate = 1.0  # type: ignore[misc]


# --- reading

DEEP: Any = 1
for _ in range(5000):
    DEEP = [DEEP]
DEEP_OBJECTS: Any = None
for _ in range(100):
    DEEP_OBJECTS = {"type": "Outer", "deeper": DEEP_OBJECTS}

HOSTILE = [
    ({}, "config has no type tag"),
    ({"type": 3}, "config has no type tag"),
    ({"type": ["Inner"]}, "config has no type tag"),
    ({"rate": 1}, "config has no type tag"),
    ({"type": "Iner"}, "unknown type 'Iner'; did you mean Inner"),
    ({"type": "os.system"}, "unknown type 'os.system'"),
    ({"type": "__main__.Inner"}, "unknown type"),
    ({"type": "user:Mine"}, "'Mine', a class of a user's own file: give that file with --recipe"),
    ({"type": "Inner", "rte": 1}, "config: Inner has no field 'rte'; did you mean rate?"),
    ({"type": "Inner", "__class__": 1}, "no field '__class__'"),
    ({"type": "Outer", "computed": 1}, "no field 'computed'"),
    ({"type": "Outer", "inner": {"type": "Inner", "rtae": 1}}, "config.inner: Inner has no field"),
    ({"type": "Outer", "x": DEEP}, "no field 'x'"),
    ({"type": "Outer", "parts": DEEP}, "nested deeper than 32"),
    (DEEP, "nested deeper than 32"),
    (DEEP_OBJECTS, "nested deeper than 32"),
    ({"type": "Inner", "rate": float("nan")}, "config.rate = nan: numbers are finite"),
    ({"type": "Inner", "rate": float("inf")}, "config.rate = inf: numbers are finite"),
    ({"type": "Inner", "rate": 10**400}, "config.rate = 1000.*: expected float"),
    ({"type": "Inner", "rate": "1"}, "config.rate = '1': expected float"),
    ({"type": "Inner", "rate": True}, "config.rate = True: expected float"),
    ({"type": "Inner", "kind": "c"}, "config.kind = 'c': expected one of 'a', 'b', 3"),
    ({"type": "Inner", "kind": 3.0}, "config.kind = 3.0: expected one of"),
    ({"type": "Outer", "count": True}, "config.count = True: expected int"),
    ({"type": "Outer", "count": 1.0}, "config.count = 1.0: expected int"),
    ({"type": "Outer", "flag": 1}, "config.flag = 1: expected bool"),
    ({"type": "Outer", "sizes": 3}, r"config.sizes = 3: expected tuple\[int, ...\]"),
    ({"type": "Outer", "sizes": [1, "2"]}, r"config.sizes = .* expected tuple\[int"),
    ({"type": "Outer", "pair": [1.0]}, r"config.pair = .* expected tuple\[float, str\]"),
    ({"type": "Outer", "pair": [1.0, "x", 2]}, "config.pair"),
    ({"type": "Outer", "inner": {"type": "Outer"}}, "config.inner = .* expected Inner"),
    ({"type": "Outer", "inner": None}, "config.inner = None: expected Inner"),
    ({"type": "Outer", "deeper": {"type": "Needy", "must": 1}}, "config.deeper = .* expected"),
    ({"type": "Needy"}, "Needy needs the field 'must'"),
]


@pytest.mark.parametrize(("data", "message"), HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_json(data: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_json(data)


def test_a_class_s_own_check_speaks() -> None:
    with pytest.raises(ValueError, match="must is at least 0, got -1"):
        from_json({"type": "Needy", "must": -1})


def test_reading_leaves_the_data_alone() -> None:
    data = {"type": "Inner", "rate": 1}
    assert from_json(data) == Inner(rate=1.0)
    assert data == {"type": "Inner", "rate": 1}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Outer(sizes=[1]), r"sizes = \[1\] cannot be written"),  # type: ignore[arg-type]
        (Inner(rate=float("nan")), "rate = nan cannot be written"),
        (Outer(deeper=Inner(rate=float("inf"))), "deeper.rate = inf cannot be written"),
        (Outer(parts=(Inner(name=b"x"),)), r"parts\[0\].name = b'x'"),  # type: ignore[arg-type]
        (Outer(count=np.int64(1)), "count = .* cannot be written"),  # type: ignore[arg-type]
        ({"a": 1}, "value = .* cannot be written"),
    ],
)
def test_what_cannot_be_written(value: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        to_json(value)


def test_too_deep_to_write() -> None:
    value = Outer()
    for _ in range(40):
        value = Outer(deeper=value)
    with pytest.raises(ConfigError, match="nested deeper than 32"):
        to_json(value)


@pytest.mark.filterwarnings("ignore")
def test_annotations_that_cannot_be_read() -> None:
    @dataclass(frozen=True)
    class Local:
        x: Nowhere = 1  # type: ignore[name-defined]

    with pytest.raises(ConfigError, match=r"annotations of Local cannot be read.*Nowhere"):
        to_json(Local())


# --- differences and changes


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        (Outer(), Outer(count=2), ["count: 1 -> 2"]),
        (Outer(), Outer(inner=Inner(rate=1)), ["inner.rate: 0.5 -> 1.0"]),
        (Outer(sizes=(1, 2)), Outer(sizes=(1, 3)), ["sizes[1]: 2 -> 3"]),
        (Outer(sizes=(1, 2)), Outer(sizes=(1,)), ["sizes: [1, 2] -> [1]"]),
        (Outer(either=1), Outer(either=1.0), ["either: 1 -> 1.0"]),
        (
            Outer(parts=(Inner(),)),
            Outer(parts=(Inner(name="é"),), flag=True),
            ["flag: false -> true", 'parts[0].name: null -> "\\u00e9"'],
        ),
    ],
)
def test_difference(old: Outer, new: Outer, lines: list[str]) -> None:
    assert difference(to_json(old), to_json(new)) == lines


def test_difference_of_json() -> None:
    assert difference(1, True) == ["value: 1 -> true"]
    assert difference({"a": None}, {}) == ["a: null -> (absent)"]
    assert difference({}, {"a": "(absent)"}) == ['a: (absent) -> "(absent)"']
    assert difference({"type": "A", "x": 1}, {"type": "B", "x": 1}) == [
        'value: {"type": "A", "x": 1} -> {"type": "B", "x": 1}'
    ]


SETTINGS = [
    ("count", "3", Outer(count=3)),
    ("count", "1e6", Outer(count=10**6)),
    ("count", str(10**30), Outer(count=10**30)),
    ("inner.rate", "1", Outer(inner=Inner(rate=1.0))),
    ("inner.rate", "1e-3", Outer(inner=Inner(rate=1e-3))),
    ("inner.name", "10", Outer(inner=Inner(name="10"))),
    ("inner.name", '"10"', Outer(inner=Inner(name="10"))),
    ("inner.name", "[[[", Outer(inner=Inner(name="[[["))),
    ("inner.name", "[" * 9999, Outer(inner=Inner(name="[" * 9999))),
    ("inner.name", "1" * 9999, Outer(inner=Inner(name="1" * 9999))),
    ("inner.name", "NaN", Outer(inner=Inner(name="NaN"))),
    ("inner.name", "null", Outer()),
    ("inner.name", "None", Outer()),
    ("inner.kind", "b", Outer(inner=Inner(kind="b"))),
    ("inner.kind", "3", Outer(inner=Inner(kind=3))),
    ("flag", "true", Outer(flag=True)),
    ("flag", "True", Outer(flag=True)),
    ("sizes", "[1, 2]", Outer(sizes=(1, 2))),
    ("rates", "[1, 2.5]", Outer(rates=(1.0, 2.5))),
    ("either", "1", Outer(either=1)),
    ("either", "1.0", Outer(either=1.0)),
    ("inner", '{"type": "Inner", "rate": 2}', Outer(inner=Inner(rate=2.0))),
    ("deeper", "null", Outer()),
]


@pytest.mark.parametrize(("path", "text", "expected"), SETTINGS)
def test_set(path: str, text: str, expected: Outer) -> None:
    new = replace_field(Outer(), path, text)
    assert new == expected
    assert digest(new) == digest(expected)


def test_set_nested_in_nested() -> None:
    start = Outer(deeper=Outer(deeper=Inner()))
    assert replace_field(start, "deeper.deeper.rate", "2").deeper.deeper == Inner(rate=2.0)


REFUSED = [
    ("cuont", "3", "cuont: Outer has no field 'cuont'; did you mean count?"),
    ("computed", "3", "Outer has no field 'computed'"),
    ("inner.rte", "3", "inner.rte: Inner has no field 'rte'; did you mean rate?"),
    ("count.x", "3", "count = 1 has no fields, so 'count.x' names nothing"),
    ("count.", "3", "'count.' names nothing"),
    ("", "3", "has no field ''"),
    ("count", "three", "count = 'three': expected int"),
    ("count", "1.5", "count = '1.5': expected int"),
    ("count", "true", "count = 'true': expected int"),
    ("count", "", "count = '': expected int"),
    ("flag", "1", "flag = '1': expected bool"),
    ("inner.rate", "NaN", "inner.rate = 'NaN': expected float"),
    ("inner.rate", "1e999", "rate = '1e999': expected float"),
    ("inner.kind", "c", "kind = 'c': expected one of 'a', 'b', 3"),
    ("sizes", "1,2", r"sizes = '1,2': expected tuple\[int, \.\.\.\]"),
    ("inner", '{"type": "Iner"}', "inner has unknown type 'Iner'; did you mean Inner"),
    ("inner", '{"type": "Outer"}', "inner = Outer.*: expected Inner"),
    ("inner", '{"type": "Inner", "x": 1}', "inner: Inner has no field 'x'"),
]


@pytest.mark.parametrize(("path", "text", "message"), REFUSED)
def test_set_refuses(path: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace_field(Outer(), path, text)
