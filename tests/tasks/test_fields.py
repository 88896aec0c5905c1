"""Every bad field of the sequence tasks, and instances that are none: named, with the value."""

from typing import Any

import numpy as np
import pytest
import torch

from algocapture.tasks import GrammarRecognition, Induction, Sorting, StringMatch, Task

BAD: list[tuple[type, dict[str, Any], str]] = [
    (Induction, {"vocab": 1}, "vocab must be an integer >= 2, got 1"),
    (Induction, {"vocab": True}, "vocab must be an integer >= 2, got True"),
    (Induction, {"vocab": 8.0}, "vocab must be an integer >= 2, got 8.0"),
    (Induction, {"vocab": np.int64(8)}, r"vocab must be a plain int, got np.int64\(8\)"),
    (Induction, {"vocab": 2**63}, "vocab must be at most 2147483647, got 9223372036854775808"),
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


A, B, SEP = 1, 2, 100  # SEP of the default Sorting
SHAPE = r"inputs must hold token ids of shape \(n, length >= {}\), got torch.{} of shape {}"

# task, instances, message. Rows are counted from 0; what is right stands first.
NOT_OURS: list[tuple[Task, Any, str]] = [
    (Induction(), np.zeros((1, 5), int), "inputs must be a torch.Tensor, got a ndarray"),
    (Induction(), torch.tensor([A, B, A]), SHAPE.format(2, "int64", r"\(3,\)")),
    (Induction(), torch.tensor([[A]]), SHAPE.format(2, "int64", r"\(1, 1\)")),
    (Induction(), torch.tensor([[1.0, 2.0, 1.0]]), SHAPE.format(2, "float32", r"\(1, 3\)")),
    (Induction(), torch.tensor([[A, B, A], [A, B, 1024]]), r"inputs\[1\] .* outside \[0, 1024\)"),
    (Induction(), torch.tensor([[A, B, A], [A, -1, A]]), r"inputs\[1\] .* outside \[0, 1024\)"),
    (Induction(), torch.tensor([[A, B, A], [A, A, B]]), r"inputs\[1\] .* the trigger, twice"),
    (Sorting(), torch.tensor([[A, B, SEP]]), r"inputs\[0\] is not \[u, SEP, s\[:-1\]\] .* = 100"),
    (Sorting(), torch.tensor([[A, B, SEP, A], [A, B, A, A]]), r"inputs\[1\] is not \[u, SEP"),
    (Sorting(), torch.tensor([[A, B, SEP, A], [A, SEP, SEP, A]]), r"inputs\[1\] is not \[u, SEP"),
    (Sorting(), torch.tensor([[A, B, SEP, 101]]), r"outside \[0, 101\)"),
    (StringMatch(), torch.tensor([[A, A, 26, A, A, A]]), SHAPE.format(7, "int64", r"\(1, 6\)")),
    (StringMatch(), torch.tensor([[A, A, A, A, B, B, B]]), r"inputs\[0\] is not \[X, SEP, M\]"),
    (StringMatch(), torch.tensor([[26, A, A, 26, B, B, B]]), r"is not \[X, SEP, M\] with SEP = 26"),
    (GrammarRecognition(), [[0, 1]], "inputs must be a torch.Tensor, got a list"),
    (
        GrammarRecognition(),
        torch.zeros(1, 0, dtype=torch.long),
        SHAPE.format(1, "int64", r"\(1, 0"),
    ),
    (GrammarRecognition(), torch.tensor([[0], [16]]), r"inputs\[1\] holds ids outside \[0, 16\)"),
]


@pytest.mark.parametrize(("task", "inputs", "message"), NOT_OURS)
def test_instances_that_are_none_are_named(task: Task, inputs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        task.solve(inputs)


def test_ids_of_any_integer_type_are_solved() -> None:
    for task in (Induction(vocab=100), Sorting(), StringMatch(), GrammarRecognition()):
        batch = task.sample(20, 8, torch.Generator().manual_seed(0))
        for dtype in (torch.int32, torch.int16, torch.uint8):
            found = task.solve(batch.inputs.to(dtype))
            assert found.dtype == torch.int64
            assert torch.equal(found, task.solve(batch.inputs))
