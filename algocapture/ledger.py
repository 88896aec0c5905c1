"""The ledger: samples and FLOPs spent, by stage and account. The only counter.

There is one way to obtain a sample, `Ledger.draw`, and it charges what it hands out.
P(T), the product of the instrument, is read from the account "train" alone; evaluation
and baselines have accounts of their own.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sized
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

Account = Literal["train", "evaluate", "baseline"]
ACCOUNTS: tuple[Account, ...] = get_args(Account)

Drawn = TypeVar("Drawn", bound=Sized)


@dataclass(frozen=True)
class Spent:
    """What an account holds. FLOPs are Python integers: they never overflow or round."""

    samples: int = 0
    flops: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.samples + other.samples, self.flops + other.flops)


NOTHING = Spent()


class Ledger:
    """Samples and FLOPs by (stage, account). One ledger per member of a population."""

    def __init__(self) -> None:
        self._spent: dict[tuple[str, Account], Spent] = {}

    def draw(
        self, sample: Callable[[int], Drawn], n: int, *, stage: str, account: Account
    ) -> Drawn:
        """Obtain `n` instances from `sample(n)` and charge them."""
        batch = sample(n)
        if len(batch) != n:
            raise ValueError(f"sample was asked for {n} instances and gave {len(batch)}")
        self.charge(stage, account, samples=n)
        return batch

    def charge(self, stage: str, account: Account, *, samples: int = 0, flops: int = 0) -> None:
        if account not in ACCOUNTS:
            raise ValueError(f"account must be one of {ACCOUNTS}, got {account!r}")
        held = self._spent.get((stage, account), NOTHING)
        self._spent[stage, account] = Spent(
            held.samples + _count("samples", samples), held.flops + _count("flops", flops)
        )

    def spent(self, *, stage: str | None = None, account: Account | None = None) -> Spent:
        """The sum over all stages and accounts that match."""
        total = Spent()
        for (at, of), held in self._spent.items():
            if stage in (None, at) and account in (None, of):
                total = total + held
        return total

    def to_json(self) -> list[dict[str, str | int]]:
        """In the order of first charge, which is the order of the stages."""
        return [
            {"stage": stage, "account": account, "samples": held.samples, "flops": held.flops}
            for (stage, account), held in self._spent.items()
        ]

    @classmethod
    def from_json(cls, rows: list[dict[str, Any]]) -> Ledger:
        ledger = cls()
        for row in rows:
            if not isinstance(row, dict) or set(row) != {"stage", "account", "samples", "flops"}:
                raise ValueError(
                    f"a row of a ledger has stage, account, samples, flops; got {row!r}"
                )
            if (row["stage"], row["account"]) in ledger._spent:
                raise ValueError(
                    f"the ledger has two rows for {row['stage']!r}, {row['account']!r}"
                )
            ledger.charge(row["stage"], row["account"], samples=row["samples"], flops=row["flops"])
        return ledger


def _count(name: str, value: Any) -> int:
    """A ledger only grows, by whole numbers: half a sample or 1e6 FLOPs hide a mistake."""
    try:
        whole = operator.index(value)  # numpy's integers too
    except TypeError:
        whole = -1
    if isinstance(value, bool) or whole < 0:
        raise ValueError(f"{name} must be an integer >= 0, got {value!r}")
    return whole
