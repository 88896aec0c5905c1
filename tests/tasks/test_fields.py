"""Every bad field of every task: the message names it and shows the value."""

from typing import Any

import pytest

from algocapture.tasks import Induction, Sorting, StringMatch

BAD: list[tuple[type, dict[str, Any], str]] = [
    (Induction, {"vocab": 1}, "vocab must be an integer >= 2, got 1"),
    (Induction, {"vocab": True}, "vocab must be an integer >= 2, got True"),
    (Induction, {"vocab": 8.0}, "vocab must be an integer >= 2, got 8.0"),
    (Sorting, {"vocab": 0}, "vocab must be an integer >= 2, got 0"),
    (StringMatch, {"alphabet": 3}, "alphabet must be an integer >= 4, got 3"),
    (StringMatch, {"pattern_length": 1}, "pattern_length must be an integer >= 2, got 1"),
    (StringMatch, {"near_misses": -1}, "near_misses must be an integer >= 0, got -1"),
    (StringMatch, {"pattern": (0, 1)}, r"pattern must .* 3 letters in 0..25, got \(0, 1\)"),
    (StringMatch, {"pattern": (0, 1, 26)}, r"in 0..25, got \(0, 1, 26\)"),
    (StringMatch, {"pattern": (0, 1, -1)}, r"in 0..25, got \(0, 1, -1\)"),
    (StringMatch, {"pattern": (0, 1, True)}, r"in 0..25, got \(0, 1, True\)"),
    (StringMatch, {"pattern": "abc"}, "in 0..25, got 'abc'"),
    (StringMatch, {"pattern": [0, 1, 2]}, r"a tuple of .*, got \[0, 1, 2\]"),
]


@pytest.mark.parametrize(("task", "fields", "message"), BAD)
def test_bad_fields_are_named(task: type, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        task(**fields)
