"""The examples of docs/own_model.md, run as a user's file would be."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from algocapture.config import to_json
from algocapture.learners import SGD, decoded_error
from algocapture.rng import Seed
from algocapture.tasks import Induction, Sorting
from algocapture.types import torch_generator

PAGE = Path(__file__).resolve().parents[2] / "docs" / "own_model.md"
LSTM, LOOP, GPT2 = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)
CPU = torch.device("cpu")


def load(tmp_path, text):
    path = tmp_path / "mine.py"
    path.write_text(text, "utf-8")
    spec = importlib.util.spec_from_file_location("mine", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def losses(config, task, seeds, size, steps):
    learner = SGD(model=config, lr=1e-2, warmup=5).build(task, seeds, CPU)
    draws = [torch_generator(seed.child("training")) for seed in seeds]
    out = []
    for _ in range(steps):
        taken = learner.step([task.sample(size, 16, g) for g in draws])
        out.append([step.loss for step in taken])
    return learner, np.array(out)


def test_the_lstm_example_runs_as_written(tmp_path, capsys):
    module = load(tmp_path, LSTM + LOOP)
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert to_json(module.Recurrent()) == {"type": "user:Recurrent", "width": 32, "depth": 1}


def test_lstm_members_are_reproducible_and_apart(tmp_path):
    recurrent = load(tmp_path, LSTM).Recurrent(width=8)
    task = Induction(vocab=8)
    torch.rand(5)  # the global generator is anywhere
    _, both = losses(recurrent, task, [Seed(0), Seed(1)], 6, 5)
    learner, alone = losses(recurrent, task, [Seed(1)], 6, 5)
    assert (both[:, 1] == alone[:, 0]).all()
    assert (both[:, 0] != both[:, 1]).all()
    (look,) = learner.predict([task.sample(6, 2, torch_generator(Seed(2)))])
    products = 6 * 2 * 4 * 8 * (8 + 8) + 2 * 8 * 8  # four gates of input and state; the head
    assert look.flops == 2 * products


def test_gpt2_example(tmp_path):
    pytest.importorskip("transformers", reason="the GPT-2 example needs transformers")
    gpt2 = load(tmp_path, GPT2).GPT2(width=8, longest=32)
    learner, taken = losses(gpt2, Induction(vocab=8), [Seed(0)], 6, 4)
    assert np.isfinite(taken).all()
    (again,) = losses(gpt2, Induction(vocab=8), [Seed(0)], 6, 4)[1:]
    assert (taken == again).all(), "dropout draws from the member's own generator"
    task = Sorting(vocab=5)
    learner, _ = losses(gpt2, task, [Seed(0)], 4, 2)
    (errors,) = decoded_error(task, learner, [task.sample(4, 3, torch_generator(Seed(1)))])
    assert errors.shape == (3,)
