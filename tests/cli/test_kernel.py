"""`algocapture kernel`: its numbers, its tiles, resuming, and errors in one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from algocapture.cli import main
from algocapture.cli.tiling import tiles
from algocapture.kernels import InfiniteTransformer
from algocapture.kernels.tile import Tile


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
    rest = (*OPTIONS, "--samples", 64, "--tile")
    call("kernel", x, "-o", whole, *rest, 2)
    draw = Tile.draw
    for stop in (3, 6, 4):  # a session ends in its third, sixth and fourth tile
        calls: list[int] = []

        def stops(self, *arguments, calls=calls, stop=stop):
            calls.append(1)
            if len(calls) == stop:
                raise KeyboardInterrupt
            return draw(self, *arguments)

        monkeypatch.setattr(Tile, "draw", stops)
        assert call("kernel", x, "-o", part, *rest, 2) != 0
    monkeypatch.setattr(Tile, "draw", draw)
    kept = sorted(Path(f"{part}.tiles").glob("round-*"))
    assert len(kept) == 2 + 5 + 3  # of rounds 0 and 1: a round's tiles go when the next is whole
    kept[5].write_bytes(b"damaged")  # of round 0: is drawn again for round 1
    kept[-1].write_bytes(kept[-1].read_bytes()[:-1])
    assert call("kernel", x, "-o", part, *rest, 3) == 2  # other settings
    assert call("kernel", x, "-o", part, *rest, 2) == 0
    assert whole.read_bytes() == part.read_bytes()


@pytest.mark.slow
def test_launchers_give_the_same_bytes(x: Path, tmp_path: Path) -> None:
    for depth in ("1", "2"):
        found = set()
        for launcher in ("inline", "processes", "ray"):
            out = tmp_path / f"{launcher}-{depth}.npz"
            rest = ("--rtol", 0.2, "--depth", depth, "--launcher", launcher)
            assert call("kernel", x, "-o", out, "--tile", 2, *rest) == 0
            found.add(out.read_bytes())
        assert len(found) == 1


def test_at_depth_1_tiles_are_parts_of_one_gram(x: Path, tmp_path: Path) -> None:
    """The entries do not depend on the tiling: to rounding, since products have other shapes."""
    grams = []
    for tile in (1, 2, 3, 5):
        out = tmp_path / f"{tile}.npz"
        rest = ("--samples", 64, "--rtol", 0.05, "--tile", tile)
        assert call("kernel", x, "-o", out, "--activation", "erf", *rest) == 0
        with np.load(out) as held:
            grams.append(held["value"])
            assert len(set(held["draws"].ravel())) == 1
    for gram in grams[:3]:
        np.testing.assert_allclose(gram, grams[3], rtol=0, atol=1e-14)
    two = tmp_path / "two.npz"  # x against itself as another array: the same draws again
    other = tmp_path / "other.npy"
    np.save(other, np.load(x)[1:4])
    assert call("kernel", x, other, "-o", two, "--activation", "erf", *rest) == 0
    with np.load(two) as held:
        assert held["value"].shape == (5, 3)
        drawn = held["draws"][0, 0]
    with np.load(tmp_path / "5.npz") as held:
        same = held["draws"][0, 0] == drawn
    assert not same or np.abs(grams[3][:, 1:4] - np.load(two)["value"]).max() < 1e-14


def test_the_draws_run_out(x: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rest = ("--samples", 64, "--rtol", 1e-6, "--limit", 1000)
    assert call("kernel", x, "-o", tmp_path / "g.npz", *rest) == 2
    shown = capsys.readouterr().err
    assert "--rtol 1e-06 is not reached after 512 draws" in shown
    assert "raise --limit 1000" in shown
    assert call("kernel", x, "-o", tmp_path / "h.npz", "--readout", "mean", "--tile", 10**5) == 2
    assert "choose a smaller one" in capsys.readouterr().err


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


def test_two_arrays_of_two_kinds(
    x: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "y.npy", np.load(x).astype(np.float32))
    assert call("kernel", x, tmp_path / "y.npy", "-o", tmp_path / "gram.npz") == 2
    assert "torch.float64" in capsys.readouterr().err
    assert not (tmp_path / "gram.npz.tiles").exists()


@pytest.mark.parametrize("body", [b"null", b'{"kernel": 3}'])
def test_tiles_of_strangers(body: bytes, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_bytes(body)
    assert call("tile", tmp_path, 0, 0) == 2


def test_a_round_that_nobody_began(x: Path, tmp_path: Path) -> None:
    """Tiles of a round beyond the limit on draws are no reason to begin there."""
    whole, part = tmp_path / "whole.npz", tmp_path / "part.npz"
    rest = (*OPTIONS, "--tile", 3)
    assert call("kernel", x, "-o", whole, *rest) == 0
    Path(f"{part}.tiles").mkdir()
    Path(f"{part}.tiles/round-60-tile-000000").touch()
    assert call("kernel", x, "-o", part, *rest) == 0
    assert whole.read_bytes() == part.read_bytes()


def test_a_second_command_is_refused(
    x: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, draw, second = tmp_path / "gram.npz", Tile.draw, []

    def drawn(self, *arguments):
        if not second:
            second.append(1)
            second.append(call("kernel", x, "-o", out, *OPTIONS))
        return draw(self, *arguments)

    monkeypatch.setattr(Tile, "draw", drawn)
    assert call("kernel", x, "-o", out, *OPTIONS) == 0
    assert second == [1, 2]
    assert "is in use by" in capsys.readouterr().err


def test_json_says_what_was_written(
    x: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "gram.npz"
    assert call("kernel", x, "-o", out, "--rtol", 0.5, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"out": str(out), "kind": "nngp", "shape": [5, 5]}
