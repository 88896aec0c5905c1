"""`algocapture kernel`: its numbers, its tiles, resuming, and errors in one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from algocapture.cli import main
from algocapture.cli.kernel import tiles
from algocapture.kernels import InfiniteTransformer


def call(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    return int(stop.value.code or 0)


@pytest.fixture
def x(tmp_path: Path) -> Path:
    path = tmp_path / "x.npy"
    np.save(path, np.random.default_rng(0).standard_normal((5, 3, 4)))
    return path


OPTIONS = ("--kind", "ntk", "--activation", "gelu", "--bias-var", "0.2", "--rtol", "0.02")


def test_the_gram_is_the_kernel_within_its_errors(x: Path, tmp_path: Path) -> None:
    out = tmp_path / "gram.npz"
    assert call("kernel", x, "-o", out, *OPTIONS, "--tile", 2) == 0
    inputs = torch.from_numpy(np.load(x))
    exact = InfiniteTransformer(1, "gelu", 1.0, 0.2, readout="last").estimate(
        inputs, samples=8000, generator=torch.Generator().manual_seed(0), kinds=["ntk"]
    )["ntk"]
    with np.load(out, allow_pickle=False) as got:
        np.testing.assert_array_equal(got["value"], got["value"].T)
        error = np.hypot(got["stderr"], exact.stderr.numpy())
        assert (np.abs(got["value"] - exact.value.numpy()) / error).max() < 4  # 15 comparisons
    assert not Path(f"{out}.tiles").exists()


def test_a_stopped_gram_continues_to_the_same(
    x: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, part = tmp_path / "whole.npz", tmp_path / "part.npz"
    call("kernel", x, "-o", whole, *OPTIONS, "--tile", 2)
    estimate, calls = InfiniteTransformer.estimate, []

    def stops(self, *arguments, **options):
        if len(calls) == 3:
            raise KeyboardInterrupt
        calls.append(1)
        return estimate(self, *arguments, **options)

    monkeypatch.setattr(InfiniteTransformer, "estimate", stops)
    assert call("kernel", x, "-o", part, *OPTIONS, "--tile", 2) != 0
    monkeypatch.setattr(InfiniteTransformer, "estimate", estimate)
    assert len(list(Path(f"{part}.tiles").glob("*.npz"))) == 3
    assert call("kernel", x, "-o", part, *OPTIONS, "--tile", 3) == 2  # other settings
    assert call("kernel", x, "-o", part, *OPTIONS, "--tile", 2) == 0
    with np.load(whole) as one, np.load(part) as two:
        np.testing.assert_array_equal(one["value"], two["value"])


def test_tiles_cover_every_entry_once() -> None:
    count = np.zeros((7, 5), dtype=int)
    for rows, columns in tiles(7, 5, 3, False):
        count[rows, columns] += 1
    assert (count == 1).all()
    upper = sum(np.zeros((7, 7))[r, c].size for r, c in tiles(7, 7, 3, True))
    assert upper == 9 + 9 + 1 + 2 * 0 + 9 + 3 + 3


def test_bad_input_is_one_line(x: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.npy"
    bad.write_text("no array")
    assert call("kernel", bad, "-o", tmp_path / "g.npz") == 2
    assert call("kernel", x, "-o", tmp_path / "g.npz", "--depth", 0) == 2
    assert "depth = 0" in capsys.readouterr().err
