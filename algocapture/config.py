"""Frozen dataclasses to and from JSON, with type tags.

Objects are their configuration: a task, a model, a protocol is a frozen dataclass, written as
`{"type": "Induction", "vocab": 1024, ...}`. Tags resolve only in the table of classes that
called `register`, never by import path: reading a file cannot run code. A class of the user's
own file is written with the tag `user:Name` and is read back by loading that file again.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import math
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

T = TypeVar("T")
USER = "user:"
MAX_DEPTH = 32
_ABSENT = object()

_registered: dict[str, type] = {}


class ConfigError(ValueError):
    """A configuration that cannot be read, written or changed as asked."""


def register(cls: type[T]) -> type[T]:
    """Class decorator: let JSON name this frozen dataclass."""
    assert dataclasses.is_dataclass(cls), f"{cls.__name__} is not a dataclass"
    assert cls.__dataclass_params__.frozen, f"{cls.__name__} is not frozen"  # type: ignore[attr-defined]
    assert _registered.get(cls.__name__, cls) is cls, f"two classes are called {cls.__name__}"
    assert "type" not in cls.__dataclass_fields__, f"{cls.__name__}: 'type' is JSON's tag"
    _registered[cls.__name__] = cls
    return cls


def registered(base: type[T]) -> dict[str, type[T]]:
    """The registered classes of a kind, by name, in the order of their definition."""
    return {name: cls for name, cls in _registered.items() if issubclass(cls, base)}


def tag(value: object) -> str:
    """The name of a configuration's class as JSON carries it."""
    name = type(value).__name__
    return name if _registered.get(name) is type(value) else USER + name


def to_json(value: Any, where: str = "", depth: int = 0) -> Any:
    """A JSON value that `from_json` reads back as an equal object."""
    _check_depth(where, depth)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        hints = _hints(type(value))
        fields = {
            f.name: to_json(
                _widen(getattr(value, f.name), hints[f.name]), f"{where}.{f.name}", depth + 1
            )
            for f in dataclasses.fields(value)
            if f.init
        }
        return {"type": tag(value)} | fields
    if value is None or type(value) in (bool, str, int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return float(value) + 0.0  # of numpy's floats the number; -0.0 becomes 0.0, its equal
    if isinstance(value, tuple):
        return [to_json(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    raise ConfigError(
        f"{_place(where)} = {value!r} cannot be written as configuration: use None, "
        "a bool, an int, a finite float, a str, a tuple or a frozen dataclass of these"
    )


def from_json(data: Any, where: str = "config", depth: int = 0) -> Any:
    """The object that `data` describes. Hostile data end in a ConfigError, never in an import."""
    _check_depth(where, depth)
    if isinstance(data, list):
        return tuple(from_json(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(data))
    if isinstance(data, float) and not math.isfinite(data):
        raise ConfigError(f"{where} = {data!r}: numbers are finite")
    if not isinstance(data, dict):
        return data
    cls = _resolve(data.get("type"), where)
    given = {key: value for key, value in data.items() if key != "type"}
    _check_known(cls, given, where)
    values = {key: from_json(v, f"{where}.{key}", depth + 1) for key, v in given.items()}
    return build(cls, values, where)


def _resolve(name: Any, where: str) -> type:
    """The registered class of a type tag."""
    if not isinstance(name, str):
        raise ConfigError(f"{where} has no type tag")
    if name.startswith(USER):
        raise ConfigError(
            f"{where} is {name.removeprefix(USER)!r}, a class of a user's own file: "
            "give that file with --recipe"
        )
    if name not in _registered:
        raise ConfigError(f"{where} has unknown type {name!r}{nearest(name, _registered)}")
    return _registered[name]


def build(cls: type[T], given: Mapping[str, Any], where: str = "config") -> T:
    """Construct `cls` from named values; unknown, missing and ill-typed fields are errors."""
    _check_known(cls, given, where)
    hints = _hints(cls)
    values = {key: _widen(value, hints[key]) for key, value in given.items()}
    for key, field in _fields(cls).items():
        if key in values:
            _check(values[key], hints[key], f"{where}.{key}")
        elif field.default is field.default_factory is dataclasses.MISSING:
            raise ConfigError(f"{where}: {cls.__name__} needs the field {key!r}")
    return cls(**values)


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON: the identity of a configuration."""
    data = value if isinstance(value, dict | list) else to_json(value)
    return hashlib.sha256(_canonical(data).encode("ascii")).hexdigest()


def _canonical(data: Any) -> str:
    return json.dumps(
        data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )


def difference(old: Any, new: Any, where: str = "") -> list[str]:
    """Readable lines `path: old -> new`, one for each place where two JSON values differ.

    There is a line exactly if the digests differ: 1, 1.0 and true are three values.
    """
    if isinstance(old, dict) and isinstance(new, dict) and old.get("type") == new.get("type"):
        pairs = [(f".{k}", old.get(k, _ABSENT), new.get(k, _ABSENT)) for k in {**old, **new}]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = [(f"[{i}]", a, b) for i, (a, b) in enumerate(zip(old, new, strict=True))]
    elif old is _ABSENT or new is _ABSENT or _canonical(old) != _canonical(new):
        return [f"{_place(where)}: {_show_value(old)} -> {_show_value(new)}"]
    else:
        return []
    return [line for key, a, b in pairs for line in difference(a, b, where + key)]


def _show_value(data: Any) -> str:
    return "(absent)" if data is _ABSENT else json.dumps(data)


def replace_field(value: Any, path: str, text: str, whole: str = "") -> Any:
    """`value` with the field at a dotted path set to `text`, read by the field's type."""
    whole = whole or path
    head, dot, rest = path.partition(".")
    _check_known(type(value), [head], whole)
    held = getattr(value, head)
    if not dot:
        new = _parse(text, _hints(type(value))[head], whole)
    elif dataclasses.is_dataclass(held):
        new = replace_field(held, rest, text, whole)
    else:
        raise ConfigError(f"{head} = {held!r} has no fields, so {whole!r} names nothing")
    return dataclasses.replace(value, **{head: new})


def _parse(text: str, hint: Any, path: str) -> Any:
    """What a field's type makes of `text`: JSON, Python's names of constants, or the bare text."""
    for candidate in _readings(text):
        if isinstance(candidate, dict):  # an object was meant: its own errors say more
            new = from_json(candidate, path)
            _check(new, hint, path)
            return new
        try:
            new = _widen(from_json(candidate, path), hint)
            _check(new, hint, path)
        except ConfigError:
            continue
        return new
    raise ConfigError(f"{path} = {text!r}: expected {_show(hint)}")


def _readings(text: str) -> list[Any]:
    """The values that a text on the command line may mean, the likeliest first."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):  # no JSON, nested too deeply, or too many digits
        return [{"True": True, "False": False, "None": None}.get(text, text), text]
    whole = isinstance(raw, float) and raw.is_integer()
    return [raw, int(raw), text] if whole else [raw, text]  # 1e6 may be a number of samples


def _fields(cls: type) -> dict[str, dataclasses.Field[Any]]:
    return {f.name: f for f in dataclasses.fields(cls) if f.init}


def _hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except NameError as error:
        raise ConfigError(
            f"the annotations of {cls.__name__} cannot be read ({error}): "
            "import or define that name at the top of the file"
        ) from None


def _place(where: str) -> str:
    return where.lstrip(".") or "value"


def _check_depth(where: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ConfigError(f"{where[:60]}...: nested deeper than {MAX_DEPTH}")


def _check_known(cls: type, names: Iterable[str], where: str) -> None:
    fields = _fields(cls)
    for name in names:
        if name not in fields:
            raise ConfigError(
                f"{where}: {cls.__name__} has no field {name!r}{nearest(name, fields)}"
            )


def _widen(value: Any, hint: Any) -> Any:
    """1 given for a float field is 1.0, so that equal configurations have equal digests."""
    if isinstance(value, tuple):
        arms = [arm for arm in _arms(hint) if get_origin(arm) is tuple]
        inner = _items(arms[0], len(value)) if len(arms) == 1 else None
        return value if inner is None else tuple(map(_widen, value, inner))
    accepts = _arms(hint)
    if type(value) is int and float in accepts and int not in accepts:
        try:
            return float(value)
        except OverflowError:
            return value  # no float: the check of types says so
    return value


def _arms(hint: Any) -> tuple[Any, ...]:
    """The alternatives of a union, else the type itself."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _items(hint: Any, length: int) -> tuple[Any, ...] | None:
    """The types of a tuple's items; None if a tuple of that length does not fit."""
    args = get_args(hint)
    arms = args[:1] * length if args[-1:] == (Ellipsis,) else args
    return arms if len(arms) == length else None


def _check(value: Any, hint: Any, where: str) -> None:
    if not _fits(value, hint):
        raise ConfigError(f"{where} = {value!r}: expected {_show(hint)}")


def _fits(value: Any, hint: Any) -> bool:
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(_fits(value, arm) for arm in args)
    if origin is Literal:
        return any(value == arm and type(value) is type(arm) for arm in args)
    if origin is tuple:
        items = _items(hint, len(value)) if isinstance(value, tuple) else None
        return items is not None and all(map(_fits, value, items))
    if hint is None or hint is type(None):
        return value is None
    if hint in (int, float, str, bool):
        return type(value) is hint
    return isinstance(value, origin or hint)


def _show(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(repr(arm) for arm in get_args(hint))
    if isinstance(hint, type) and get_origin(hint) is None:
        return hint.__name__
    return str(hint).replace("typing.", "")


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of an error message: the names that were perhaps meant."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(close)}?" if close else f"; known: {', '.join(names)}"
