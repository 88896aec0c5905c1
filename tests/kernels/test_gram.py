"""Growing Grams and encoded tokens."""

import pytest
import torch

from algocapture.kernels import InfiniteFullyConnected, InfiniteTransformer
from algocapture.kernels.encode import encode
from algocapture.kernels.gram import ExactGram, GrowingGram
from algocapture.kernels.roots import GrowingRoot, eigen_root
from algocapture.rng import Seed


def draw(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


INPUTS = [draw(3, 4, seed=1), draw(2, 4, seed=2), draw(4, 4, seed=3), draw(3, 4, seed=4)]


def grown(kernel, kind, steps, samples=2000, seed=0, key_dim=None):
    gram = GrowingGram(kernel, kind, samples=samples, seed=Seed(seed), key_dim=key_dim)
    for step in steps:
        gram.append(step)
    return gram


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("readout", ["last", "mean"])
@pytest.mark.parametrize("kind", ["nngp", "ntk"])
def test_a_grown_gram_estimates_the_kernel(depth, readout, kind):
    kernel = InfiniteTransformer(depth, "gelu", 1.7, 0.2, readout=readout, causal=True)
    expected = kernel.estimate(
        INPUTS, samples=8000, generator=torch.Generator().manual_seed(0), kinds=[kind]
    )[kind]
    for steps in ([INPUTS], [INPUTS[:2], INPUTS[2:3], INPUTS[3:]]):
        matrices = grown(kernel, kind, steps).matrix()
        stderr = matrices.std(0) / len(matrices) ** 0.5
        error = (matrices.mean(0) - expected.value) / (
            stderr**2 + expected.stderr**2 + 1e-18
        ).sqrt()
        # 10 distinct entries, of which 8 replicates give a t law of 7 degrees: 6.4 is a z of 4
        assert error.abs().max() < 6.4
        assert torch.equal(matrices, matrices.mT)
        assert torch.linalg.eigvalsh(matrices).min() > -1e-9 * matrices.abs().max()


def test_finite_keys_are_those_of_the_estimator():
    """One key dimension, as far as possible from the limit; 10 entries as above."""
    kernel = InfiniteTransformer(1, "gelu", 1.7, 0.2, readout="last", score_scale=2.0)
    one, limit = (
        kernel.estimate(
            INPUTS, samples=40_000, generator=torch.Generator().manual_seed(0), **options
        )["nngp"]
        for options in ({"sampler": "keys", "key_dim": 1}, {})
    )
    gram = grown(kernel, "nngp", [INPUTS[:1], INPUTS[1:]], samples=20_000, key_dim=1)
    matrices = gram.matrix()
    spread = (matrices.var(0) / len(matrices) + one.stderr**2).sqrt()
    assert ((matrices.mean(0) - one.value) / spread).abs().max() < 6.4
    assert ((matrices.mean(0) - limit.value) / spread).abs().max() > 10
    assert gram.biases[-1] == "order 1/1 from a finite key dimension"
    assert gram.flops(INPUTS) > 0


@pytest.mark.parametrize("key_dim", [None, 2])
@pytest.mark.parametrize("kind", ["nngp", "ntk"])
def test_old_entries_keep_every_bit_and_a_cross_gram_is_what_appending_gives(kind, key_dim):
    kernel = InfiniteTransformer(2, "relu", 1.7, 0.2, readout="last")
    gram = grown(kernel, kind, [INPUTS[:2]], samples=160, key_dim=key_dim)
    before = gram.matrix()
    rows, own = gram.cross(INPUTS[2:])
    assert torch.equal(gram.matrix(), before)
    gram.append(INPUTS[2:])
    after = gram.matrix()
    assert torch.equal(after[:, :2, :2], before)
    assert torch.equal(after[:, 2:, :2], rows)
    assert torch.equal(after[:, 2:, 2:].diagonal(dim1=1, dim2=2), own)


def test_an_exact_gram_grows_to_the_same():
    kernel, x = InfiniteFullyConnected(3, "gelu", 1.6, 0.1), draw(5, 2, 3)
    gram = ExactGram(kernel, "ntk")
    gram.append(x[:3])
    gram.append(x[3:])
    torch.testing.assert_close(gram.matrix()[0], kernel(x, kind="ntk"))
    with pytest.raises(ValueError, match="needs one length"):
        gram.append([draw(2, 3), draw(1, 3)])


def test_encoded_tokens_have_the_covariance_promised():
    tokens = torch.tensor([[3, 1, 3, 0], [0, 0, 2, 1]])
    x = encode(tokens, 5, positions=64, length_scale=3.0, strength=0.7)
    sigma = torch.einsum("pad,qbd->pqab", x, x) / x.shape[-1]
    same = (tokens[:, None, :, None] == tokens[None, :, None, :]).double()
    distance = torch.arange(4)[:, None] - torch.arange(4)
    rho = sigma - same
    # one law of the distance alone, close to a Gaussian
    torch.testing.assert_close(rho, rho[0, 0].expand(2, 2, 4, 4))
    assert rho[0, 0, 0, 0] == pytest.approx(0.7)
    expected = 0.7 * torch.exp(-(distance.double() ** 2) / 18)
    assert (rho[0, 0] - expected).abs().max() < 0.02
    plain = encode(tokens, 5, positions=0)
    torch.testing.assert_close(torch.einsum("pad,qbd->pqab", plain, plain) / 5, same)
    with pytest.raises(ValueError, match=r"tokens lie in \[0, 3\], expected \[0, 3\)"):
        encode(tokens, 3)
    with pytest.raises(ValueError, match="length_scale = 0"):
        encode(tokens, 5, length_scale=0)


@pytest.mark.parametrize("rank", [3, 9])
def test_a_grown_root_is_a_root_of_the_whole_covariance(rank):
    """Grown twice, of full and of low rank; the old rows keep every bit."""
    tokens = draw(9, rank, seed=6)
    sigma = tokens @ tokens.T
    root = GrowingRoot.of(sigma[:4, :4])
    for n, m in ((4, 7), (7, 9)):
        grown = root.grow(sigma[n:m, :n], sigma[n:m, n:m])
        assert torch.equal(grown.factor[:n, : root.factor.shape[1]], root.factor)
        root = grown
        torch.testing.assert_close(root.factor @ root.factor.T, sigma[:m, :m])
        torch.testing.assert_close(root.factor @ root.inverse @ root.factor, root.factor)


def test_roots_of_nothing_are_zero():
    for shape in ((3, 3), (2, 3, 3)):
        factor, inverse = eigen_root(torch.zeros(shape, dtype=torch.float64))
        assert not factor.any()
        assert not inverse.any()


def test_repeated_inputs_leave_a_gram_finite():
    """Appended twice and asked about: what is new in a repetition is rounding alone."""
    kernel = InfiniteTransformer(2, "relu", 1.7, 0.2, readout="last")
    gram = grown(kernel, "ntk", [INPUTS[:2], INPUTS[:2], INPUTS[1:3]], samples=64)
    matrices = gram.matrix()
    assert torch.isfinite(matrices).all()
    torch.testing.assert_close(matrices[:, 2:4], matrices[:, :2], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(matrices[:, 4], matrices[:, 1], rtol=1e-6, atol=1e-6)
    rows, own = gram.cross(INPUTS[:1])
    torch.testing.assert_close(rows[:, 0], matrices[:, 0], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(own[:, 0], matrices[:, 0, 0], rtol=1e-6, atol=1e-6)
