"""Stores that are broken on purpose: what the campaign must count if it is to be believed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from algocapture.ledger import Ledger
from algocapture.store import files
from algocapture.store.unit import UnitFolder


@contextmanager
def in_place() -> Iterator[None]:
    """Files are written under their own names: a kill leaves halves."""
    true = files.write_atomic

    def careless(path: Path, data: bytes, durable: bool = True) -> None:
        if path.name.startswith(".lock"):  # a torn one only makes the next driver wait
            true(path, data, durable)
            return
        with open(path, "wb") as file:
            for start in range(0, len(data), 64):
                files._point("write", path)
                file.write(data[start : start + 64])
                file.flush()
        files._point("rename", path)

    with patch.object(files, "write_atomic", careless):
        yield


@contextmanager
def no_rename() -> Iterator[None]:
    """One stage file in two is never renamed into place."""
    true, count = files.write_atomic, iter(range(10**9))

    def dropped(path: Path, data: bytes, durable: bool = True) -> None:
        if not path.name.startswith("stage") or next(count) % 2:
            true(path, data, durable)

    with patch.object(files, "write_atomic", dropped):
        yield


@contextmanager
def ledger() -> Iterator[None]:
    """A resumed ledger is charged again for what it holds."""
    true = Ledger.from_json.__func__

    def again(cls: type[Ledger], rows: list[dict[str, Any]]) -> Ledger:
        return true(cls, [row | {"samples": 2 * row["samples"]} for row in rows])

    with patch.object(Ledger, "from_json", classmethod(again)):
        yield


@contextmanager
def one_checkpoint() -> Iterator[None]:
    """A damaged checkpoint is an error instead of a reason to use the one before."""

    def strict(self: UnitFolder, message: str) -> None:
        if "previous checkpoint is used" in message:
            raise files.StoreError(message)

    true = UnitFolder.__enter__

    def entered(self: UnitFolder) -> UnitFolder:
        self._notify = lambda message: strict(self, message)
        return true(self)

    with patch.object(UnitFolder, "__enter__", entered):
        yield


BROKEN: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "in-place": in_place,
    "no-rename": no_rename,
    "ledger": ledger,
    "one-checkpoint": one_checkpoint,
}
