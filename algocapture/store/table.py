"""The decided stages of many runs as rows, ready for `pandas.DataFrame(rows)`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from algocapture.store.files import StoreError
from algocapture.store.run import RunFolder


def read_table(
    folders: Iterable[Path | str], on_error: Callable[[StoreError], None] | None = None
) -> list[dict[str, Any]]:
    """One row per decided stage: run, seed, stage, the stage's plain values, and the identity's
    as `task.vocab`, `protocol.delta`, .... Lists, such as looks, are left out.

    A folder that cannot be read raises, or is skipped if `on_error` is given.
    """
    rows: list[dict[str, Any]] = []
    for folder in folders:
        try:
            rows.extend(_rows(RunFolder(folder)))
        except StoreError as error:
            if on_error is None:
                raise
            on_error(error)
    return rows


def _rows(run: RunFolder) -> list[dict[str, Any]]:
    identity = flatten(run.identity)
    rows = []
    for seed in run.seeds():
        for index, stage in enumerate(run.stages(seed)):
            place = {"run": str(run.path), "digest": run.digest, "seed": seed, "stage": index}
            rows.append(identity | flatten(stage) | place)
    return rows


def flatten(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested objects become dotted names; lists are left out."""
    flat: dict[str, Any] = {}
    for key, held in value.items():
        if isinstance(held, dict):
            flat |= flatten(held, f"{prefix}{key}.")
        elif not isinstance(held, list):
            flat[prefix + key] = held
    return flat
