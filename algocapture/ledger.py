"""The ledger: samples and FLOPs spent, by stage and account. The only counter.

There is one way to obtain a sample, `Ledger.draw`, and it charges what it hands out.
P(T), the product of the instrument, is read from the account "train" alone; evaluation
and baselines have accounts of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

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


class Ledger:
    """Samples and FLOPs by (stage, account). One ledger per member of a population."""

    def __init__(self) -> None:
        self._spent: dict[tuple[str, Account], Spent] = {}

    def draw(
        self, sample: Callable[[int], Drawn], n: int, *, stage: str, account: Account
    ) -> Drawn:
        """Obtain `n` instances from `sample(n)` and charge them."""
        batch = sample(n)
        assert len(batch) == n, f"asked for {n} instances, was handed {len(batch)}"
        self.charge(stage, account, samples=n)
        return batch

    def charge(self, stage: str, account: Account, *, samples: int = 0, flops: int = 0) -> None:
        if account not in ACCOUNTS:
            raise ValueError(f"account must be one of {ACCOUNTS}, got {account!r}")
        if samples < 0 or flops < 0:
            raise ValueError(f"a ledger only grows, got samples={samples}, flops={flops}")
        held = self._spent.get((stage, account), Spent())
        self._spent[stage, account] = held + Spent(int(samples), int(flops))

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
    def from_json(cls, rows: list[dict[str, str | int]]) -> Ledger:
        ledger = cls()
        for row in rows:
            ledger.charge(
                str(row["stage"]),
                row["account"],  # type: ignore[arg-type]  # checked by charge
                samples=int(row["samples"]),
                flops=int(row["flops"]),
            )
        return ledger
