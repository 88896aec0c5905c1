"""Standard errors, continuation, positive semi-definiteness, hard inputs and bad ones."""

import math

import pytest
import torch

from algocapture.config import from_json, to_json
from algocapture.kernels import InfiniteTransformer, unpad

BOTH = ("nngp", "ntk")


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def draw(*shape, seed=0, dtype=torch.float64):
    return torch.randn(shape, generator=generator(seed), dtype=dtype)


def smallest_eigenvalue(value):
    """Of a Gram (P, P) or (P, P, T, T), relative to the largest."""
    wide = value if value.ndim == 2 else value.permute(0, 2, 1, 3).flatten(2).flatten(0, 1)
    values = torch.linalg.eigvalsh((wide + wide.T) / 2)
    return float(values[0] / values[-1])


@pytest.mark.parametrize(
    ("depth", "repetitions"),
    [(1, 80), (2, 60), pytest.param(3, 150, marks=pytest.mark.slow)],
)
def test_intervals_cover(depth, repetitions):
    """The interval of each independent estimate covers the mean of all; 3 entries x 2 kinds.

    A coverage of 0.95 over `repetitions` has a standard deviation of at most 0.022; entries share
    draws, so the pooled share is held within 4 of those.
    """
    kernel = InfiniteTransformer(depth, "gelu", 1.7, 0.2, readout="mean")
    x, rng = draw(2, 3, 4, seed=1), generator(2)
    samples = 256 if depth == 1 else 1024
    runs = [
        kernel.estimate(x, samples=samples, generator=rng, kinds=BOTH) for _ in range(repetitions)
    ]
    inside = []
    for kind in BOTH:
        values = torch.stack([r[kind].value for r in runs])
        errors = torch.stack([r[kind].stderr for r in runs])
        parts = runs[0][kind].replicates
        quantile = {32: 2.040, 8: 2.365}[parts]  # Student's t
        inside.append(
            ((values - values.mean(0)).abs() < quantile * errors)[:, [0, 0, 1], [0, 1, 1]]
        )
    coverage = torch.stack(inside).double().mean().item()
    assert abs(coverage - 0.95) < 4 * math.sqrt(0.05 * 0.95 / repetitions)


def test_same_generator_same_numbers_and_more_continues():
    kernel = InfiniteTransformer(2, "relu", 1.7, 0.2, readout="last")
    x = draw(3, 4, 5)
    one, two = (
        kernel.estimate(x, samples=160, generator=generator(3), kinds=BOTH) for _ in range(2)
    )
    assert torch.equal(one["ntk"].value, two["ntk"].value)
    longer = one.more(160)
    assert longer.draws == 2 * one.draws
    whole = kernel.estimate(x, samples=160, generator=(rng := generator(3)), kinds=BOTH)
    rest = kernel.estimate(x, samples=160, generator=rng, kinds=BOTH)
    torch.testing.assert_close(
        longer["ntk"].value, (whole["ntk"].value + rest["ntk"].value) / 2, rtol=1e-12, atol=0
    )
    assert "order 1/20" in one["nngp"].biases[0]


def test_until_reaches_the_error_and_says_when_it_cannot():
    kernel = InfiniteTransformer(1, "gelu", 1.7, 0.2)
    first = kernel.estimate(draw(2, 3, 4), samples=64, generator=generator(), kinds=BOTH)
    done = first.until(rtol=0.01)
    assert max(e.relative_error for e in done.values()) <= 0.01
    assert done.draws > first.draws
    assert done["nngp"].replicates <= 64  # parts merge, memory stays bounded
    with pytest.raises(ValueError, match="rtol = 1e-06 not reached"):
        first.until(rtol=1e-6, limit=1000)
    with pytest.raises(ValueError, match="rtol = 0"):
        first.until(rtol=0)


@pytest.mark.parametrize("samples", [1, 7, 64])
def test_a_shared_root_is_positive_semi_definite_for_any_number_of_draws(samples):
    for activation in ("relu", "gelu", "erf"):
        kernel = InfiniteTransformer(2, activation, 1.7, 0.2)
        x = draw(6, 5, 4)
        x = torch.cat([x, x[:2]])  # duplicates
        got = kernel.estimate(x, samples=samples, generator=generator(), kinds=BOTH)
        for kind in BOTH:
            assert smallest_eigenvalue(got[kind].value) >= -1e-9


@pytest.mark.slow
@pytest.mark.parametrize("samples", [1, 16])
def test_a_large_gram_is_positive_semi_definite(samples):
    kernel = InfiniteTransformer(2, "relu", 1.7, 0.2)
    got = kernel.estimate(draw(64, 16, 16), samples=samples, generator=generator(), kinds=BOTH)
    for kind in BOTH:
        assert smallest_eigenvalue(got[kind].value) >= -1e-9


def test_pairs_are_projected_and_say_so():
    kernel = InfiniteTransformer(1, "gelu", 1.7, 0.2, readout="last")
    got = kernel.estimate(draw(12, 4, 3), samples=8, generator=generator(), sampler="pair")["nngp"]
    assert "projection" in got.biases[-1]
    assert smallest_eigenvalue(got.value) >= -1e-12


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_hard_inputs_give_finite_kernels(depth, dtype):
    kernel = InfiniteTransformer(depth, "relu", 1.7, 0.2)
    x = draw(4, 5, 4, dtype=dtype)
    x[1] = x[0]  # a duplicate input
    x[2, 1:3] = 0  # zero tokens
    x[3] *= 1e-6
    got = kernel.estimate(x, samples=64, generator=generator(), kinds=BOTH)
    for kind in BOTH:
        assert torch.isfinite(got[kind].value).all()
        assert torch.isfinite(got[kind].stderr).all()
        duplicate = got[kind].value
        torch.testing.assert_close(duplicate[0, 0], duplicate[0, 1], rtol=1e-3, atol=1e-3)


def test_large_tokens_are_finite_or_a_clear_error():
    kernel, x = InfiniteTransformer(1, "relu"), 1e6 * draw(2, 4, 4, dtype=torch.float32)
    assert torch.isfinite(kernel.estimate(x, generator=generator())["nngp"].value).all()
    with pytest.raises(ValueError, match="rescale the inputs"):
        kernel.estimate(x, generator=generator(), kinds=["ntk"])


@pytest.mark.slow
def test_long_low_rank_inputs_in_float32():
    x = draw(2, 512, 32, dtype=torch.float32)
    got = InfiniteTransformer(2, "relu", 1.7, 0.2, readout="last").estimate(
        x, samples=8, generator=generator(), kinds=BOTH
    )
    assert torch.isfinite(got["ntk"].value).all()


def test_the_memory_limit_does_not_change_the_law():
    kernel, x = InfiniteTransformer(1, "gelu", 1.7, 0.2), draw(3, 4, 5)
    wide = kernel.estimate(x, samples=3200, generator=generator(), kinds=["ntk"])["ntk"]
    tight = kernel.estimate(x, samples=3200, generator=generator(1), kinds=["ntk"], memory=20_000)[
        "ntk"
    ]
    z = (wide.value - tight.value) / (wide.stderr**2 + tight.stderr**2).sqrt()
    assert z.abs().max() < 4  # 144 comparisons


def test_padding_by_a_mask_equals_a_list():
    x = draw(2, 4, 3)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    kernel = InfiniteTransformer(1, "relu", readout="mean")
    one = kernel.estimate(unpad(x, mask), samples=50, generator=generator())
    two = kernel.estimate([x[0], x[1, :2]], samples=50, generator=generator())
    assert torch.equal(one["nngp"].value, two["nngp"].value)


def test_a_kernel_is_its_configuration():
    kernel = InfiniteTransformer(2, "gelu", score_scale=(1.0, 2.0))
    assert from_json(to_json(kernel)) == kernel


def estimate(x=None, kernel=None, **options):
    kernel = kernel or InfiniteTransformer()
    x = draw(2, 3, 4) if x is None else x
    return kernel.estimate(x, generator=generator(), **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: InfiniteTransformer(depth=0), "depth = 0"),
        (lambda: InfiniteTransformer(weight_var=-1), "weight_var = -1"),
        (lambda: InfiniteTransformer(bias_var=math.inf), "bias_var = inf"),
        (lambda: InfiniteTransformer(activation="mish"), "unknown activation 'mish'"),
        (lambda: InfiniteTransformer(readout="first"), "readout = 'first'"),
        (lambda: InfiniteTransformer(score_scale=-1.0), "score_scale = -1.0"),
        (lambda: estimate(samples=0), "samples = 0"),
        (lambda: estimate(kinds=("ntkk",)), "kind = 'ntkk'"),
        (lambda: estimate(kinds="ntk"), "kinds = 'ntk'"),
        (lambda: estimate(sampler="gibbs"), "sampler = 'gibbs'"),
        (lambda: estimate(dtype="bfloat16"), "dtype = 'bfloat16'"),
        (lambda: estimate(x=torch.full((2, 3, 4), math.nan)), "x1 holds NaN"),
        (lambda: estimate(x=torch.ones(2, 0, 4)), r"x1 has shape \(2, 0, 4\)"),
        (lambda: estimate(x=[]), "x1 is an empty list"),
        (lambda: estimate(x=[draw(2, 3), draw(2, 4)]), r"x1\[1\] has shape"),
        (lambda: estimate(x2=draw(2, 3, 5)), "x2 has d = 5"),
        (lambda: estimate(x2=draw(2, 3, 4).float()), "inputs are of torch.float32, torch.float64"),
        (lambda: estimate(sampler="row"), "sampler = 'row' draws the last"),
        (lambda: estimate(memory=100), "memory = 100: these 2 inputs of 3 tokens need about"),
        (lambda: InfiniteTransformer().estimate(draw(1, 2, 3), generator=7), "generator = 7"),
        (lambda: estimate(x=torch.ones(2, 3, 4, dtype=torch.int64)), "x1 is torch.int64"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
