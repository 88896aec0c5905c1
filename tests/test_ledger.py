"""The ledger: every sample is charged once, and sums are exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algocapture.ledger import ACCOUNTS, Ledger, Spent

CHARGES = st.lists(
    st.tuples(
        st.sampled_from(["stage-000", "stage-001", ""]),
        st.sampled_from(ACCOUNTS),
        st.integers(0, 2**80),
        st.integers(0, 2**80),
    ),
    max_size=12,
)


@given(CHARGES)
def test_sums_are_those_of_the_charges(charges: list[tuple[str, Any, int, int]]) -> None:
    ledger = Ledger()
    for stage, account, samples, flops in charges:
        ledger.charge(stage, account, samples=samples, flops=flops)
    for stage in [None, "stage-000", "stage-001", "", "never"]:
        for account in [None, *ACCOUNTS]:
            rows = [c for c in charges if stage in (None, c[0]) and account in (None, c[1])]
            total = Spent(sum(c[2] for c in rows), sum(c[3] for c in rows))
            assert ledger.spent(stage=stage, account=account) == total
    again = Ledger.from_json(ledger.to_json())
    assert again.to_json() == ledger.to_json()


def test_draw_hands_out_and_charges() -> None:
    ledger = Ledger()
    assert ledger.draw(lambda n: list(range(n)), 3, stage="a", account="train") == [0, 1, 2]
    ledger.draw(lambda n: [0] * n, 5, stage="a", account="evaluate")
    assert ledger.spent(account="train") == Spent(3, 0)
    assert ledger.spent(stage="a") == Spent(8, 0)


def test_a_failed_draw_is_not_charged() -> None:
    ledger = Ledger()
    with pytest.raises(ValueError, match="asked for 4 instances and gave 3"):
        ledger.draw(lambda n: [0] * (n - 1), 4, stage="a", account="train")
    with pytest.raises(ZeroDivisionError):
        ledger.draw(lambda n: [n // 0], 4, stage="a", account="train")
    assert ledger.spent() == Spent()


def test_integers_of_numpy_become_python_s() -> None:
    ledger = Ledger()
    for _ in range(3):
        ledger.charge("a", "train", flops=np.int64(2**62))  # type: ignore[arg-type]
    assert ledger.spent().flops == 3 * 2**62


@pytest.mark.parametrize("field", ["samples", "flops"])
@pytest.mark.parametrize("value", [-1, 0.5, 1e6, float("nan"), "3", None, True, np.float64(2)])
def test_bad_counts(field: str, value: object) -> None:
    ledger = Ledger()
    with pytest.raises(ValueError, match=f"{field} must be an integer >= 0, got"):
        ledger.charge("a", "train", **{field: value})  # type: ignore[arg-type]
    assert ledger.to_json() == []


ROW = {"stage": "a", "account": "train", "samples": 1, "flops": 2}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([ROW | {"account": "tests"}], "account must be one of .* got 'tests'"),
        ([ROW | {"samples": 1.5}], "samples must be an integer >= 0, got 1.5"),
        ([ROW, ROW], "two rows for 'a', 'train'"),
        ([{"stage": "a"}], "a row of a ledger has"),
        (["a"], "a row of a ledger has"),
    ],
)
def test_bad_rows(rows: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Ledger.from_json(rows)
