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
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

T = TypeVar("T")
USER = "user:"
MAX_DEPTH = 32

_registered: dict[str, type] = {}


class ConfigError(ValueError):
    """A configuration that cannot be read, written or changed as asked."""


def register(cls: type[T]) -> type[T]:
    """Class decorator: let JSON name this frozen dataclass."""
    assert dataclasses.is_dataclass(cls), f"{cls.__name__} is not a dataclass"
    assert cls.__dataclass_params__.frozen, f"{cls.__name__} is not frozen"  # type: ignore[attr-defined]
    assert _registered.get(cls.__name__, cls) is cls, f"two classes are called {cls.__name__}"
    _registered[cls.__name__] = cls
    return cls


def registered(base: type[T]) -> dict[str, type[T]]:
    """The registered classes of a kind, by name, in the order of their definition."""
    return {name: cls for name, cls in _registered.items() if issubclass(cls, base)}


def tag(value: object) -> str:
    """The name of a configuration's class as JSON carries it."""
    name = type(value).__name__
    return name if _registered.get(name) is type(value) else USER + name


def to_json(value: Any, where: str = "") -> Any:
    """A JSON value that `from_json` reads back as an equal object."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        hints = _hints(type(value))
        fields = {
            f.name: to_json(_widen(getattr(value, f.name), hints[f.name]), f"{where}.{f.name}")
            for f in dataclasses.fields(value)
            if f.init
        }
        return {"type": tag(value)} | fields
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, tuple):
        return [to_json(item, f"{where}[{i}]") for i, item in enumerate(value)]
    raise ConfigError(
        f"{where.lstrip('.') or 'value'} = {value!r} cannot be written as configuration: use None, "
        "a bool, an int, a finite float, a str, a tuple or a frozen dataclass of these"
    )


def from_json(data: Any, where: str = "config") -> Any:
    """The object that `data` describes. Hostile data end in a ConfigError, never in an import."""
    if where.count(".") + where.count("[") > MAX_DEPTH:
        raise ConfigError(f"{where[:60]}...: nested deeper than {MAX_DEPTH}")
    if isinstance(data, list):
        return tuple(from_json(item, f"{where}[{i}]") for i, item in enumerate(data))
    if not isinstance(data, dict):
        return data
    name = data.get("type")
    if not isinstance(name, str):
        raise ConfigError(f"{where} has no type tag")
    if name.startswith(USER):
        raise ConfigError(
            f"{where} is {name.removeprefix(USER)!r}, a class of a user's own file: "
            "give that file with --recipe"
        )
    if name not in _registered:
        raise ConfigError(f"{where} has unknown type {name!r}{nearest(name, _registered)}")
    values = {k: from_json(v, f"{where}.{k}") for k, v in data.items() if k != "type"}
    return build(_registered[name], values, where)


def build(cls: type[T], values: dict[str, Any], where: str = "config") -> T:
    """Construct `cls` from named values; unknown, missing and ill-typed fields are errors."""
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    hints = _hints(cls)
    for key in values:
        if key not in fields:
            raise ConfigError(f"{where}: {cls.__name__} has no field {key!r}{nearest(key, fields)}")
    for key, field in fields.items():
        if key in values:
            values[key] = _widen(values[key], hints[key])
            _check(values[key], hints[key], f"{where}.{key}")
        elif field.default is field.default_factory is dataclasses.MISSING:
            raise ConfigError(f"{where}: {cls.__name__} needs the field {key!r}")
    return cls(**values)


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON: the identity of a configuration."""
    data = value if isinstance(value, dict | list) else to_json(value)
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def difference(old: Any, new: Any, where: str = "") -> list[str]:
    """Readable lines `path: old -> new`, one for each place where two JSON values differ."""
    if isinstance(old, dict) and isinstance(new, dict) and old.get("type") == new.get("type"):
        keys = list(old) + [k for k in new if k not in old]
        return [
            line
            for k in keys
            for line in difference(old.get(k, "(absent)"), new.get(k, "(absent)"), f"{where}.{k}")
        ]
    if old == new and isinstance(old, bool) == isinstance(new, bool):
        return []
    return [f"{where.lstrip('.') or 'value'}: {json.dumps(old)} -> {json.dumps(new)}"]


def replace_field(value: Any, path: str, text: str) -> Any:
    """`value` with the field at a dotted path set to `text`, read by the field's type."""
    head, _, rest = path.partition(".")
    names = [f.name for f in dataclasses.fields(value) if f.init]
    if head not in names:
        raise ConfigError(f"{type(value).__name__} has no field {head!r}{nearest(head, names)}")
    held = getattr(value, head)
    if rest:
        if not dataclasses.is_dataclass(held):
            raise ConfigError(f"{head} = {held!r} has no fields, so {path!r} names nothing")
        new = replace_field(held, rest, text)
    else:
        new = _parse(text, _hints(type(value))[head], path)
    return dataclasses.replace(value, **{head: new})


def _parse(text: str, hint: Any, path: str) -> Any:
    try:
        raw = json.loads(text, parse_constant=lambda name: name)
    except json.JSONDecodeError:
        raw = {"True": True, "False": False, "None": None}.get(text, text)
    for candidate in (raw, text):  # a string field may be set to 10 as well as to "10"
        new = _widen(from_json(candidate, path), hint)
        try:
            _check(new, hint, path)
        except ConfigError:
            continue
        return new
    raise ConfigError(f"{path} = {text!r}: expected {_show(hint)}")


def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _widen(value: Any, hint: Any) -> Any:
    """1 given for a float field is 1.0, so that equal configurations have equal digests."""
    accepts = set(get_args(hint)) or {hint}
    if float in accepts and int not in accepts and type(value) is int:
        return float(value)
    return value


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
        if not isinstance(value, tuple):
            return False
        arms = args[:1] * len(value) if args[-1:] == (Ellipsis,) else args
        return len(arms) == len(value) and all(map(_fits, value, arms))
    if hint is None or hint is type(None):
        return value is None
    if hint in (int, float, str, bool):
        return type(value) is hint
    return isinstance(value, origin or hint)


def _show(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(repr(arm) for arm in get_args(hint))
    return getattr(hint, "__name__", None) or str(hint).replace("typing.", "")


def nearest(name: str, known: typing.Iterable[str]) -> str:
    """The end of an error message: the names that were perhaps meant."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(close)}?" if close else f"; known: {', '.join(names)}"
