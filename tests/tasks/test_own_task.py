"""The example of docs/own_task.md, run as a user's file would be."""

from __future__ import annotations

import importlib.util
import itertools
import re
from pathlib import Path
from types import ModuleType

import pytest
import torch

from algocapture.config import to_json
from algocapture.types import Batch

PAGE = Path(__file__).resolve().parents[2] / "docs" / "own_task.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)


@pytest.fixture
def mine(tmp_path: Path) -> ModuleType:
    path = tmp_path / "mine.py"
    path.write_text("\n\n".join(BLOCKS), "utf-8")
    spec = importlib.util.spec_from_file_location("mine_task", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_s_example(mine: ModuleType) -> None:
    task, batch = mine.task, mine.batch
    assert len(BLOCKS) == 2
    assert batch.inputs.shape == (1000, 12)
    assert (task.solve(batch.inputs) == batch.targets)[batch.mask].all()
    every = torch.tensor(list(itertools.product([0, 1], repeat=6)))
    odd = [[row.count(1) % 2 for row in every.tolist()]]
    assert task.solve(every).tolist() == odd[0]
    # "even" errs with probability (1 - (1 - 2 * 0.2)**12) / 2 = 0.4989: |z| < 4 in one comparison
    error = float(task.error(torch.zeros_like(batch.targets), batch).mean())
    assert abs(error - 0.4989) < 4 * (0.25 / 1000) ** 0.5
    assert to_json(task) == {"type": "user:Parity", "ones": 0.2}


def test_its_card(mine: ModuleType) -> None:
    content = mine.card(mine.task, 12, 3, torch.Generator().manual_seed(0))
    assert content["about"] == "1 if the number of ones is odd, else 0."
    assert content["fields"] == {"ones": 0.2}
    assert set(content["baselines"]) == {"constant"}
    assert len(content["instances"][0]["symbols"]) == 12


BAD = [
    (
        (3,),
        (4,),
        torch.bool,
        r"mask must be bool of the targets' shape \(3,\), got .*bool .* \(4,\)",
    ),
    ((3,), (3,), torch.float32, "mask must be bool .*, got torch.float32"),
    ((4, 1), (4, 1), torch.bool, "targets answer 4 instances, but inputs hold 3"),
]


@pytest.mark.parametrize(("targets", "mask", "dtype", "message"), BAD)
def test_a_batch_that_does_not_fit_is_named(targets, mask, dtype, message) -> None:
    with pytest.raises(ValueError, match=message):
        Batch(torch.zeros(3, 5), torch.zeros(targets), torch.ones(mask, dtype=dtype), size=5)
