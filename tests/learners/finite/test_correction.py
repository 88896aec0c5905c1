"""The expansion in 1/width against exact moments, an exact posterior, and the paper's formula."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate

from algocapture.kernels import InfiniteFullyConnected
from algocapture.learners.finite import Problem, correction, size, weighted_posterior
from algocapture.learners.finite.correction import fourth_cumulant, paper_correction
from algocapture.models import FullyConnected, Population


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def points(n, features=3, seed=1):
    return torch.randn(n, features, generator=generator(seed), dtype=torch.float64)


def problem(count=3, tests=2, depth=2, activation="relu", ridge=0.3):
    x = points(count + tests)
    kernel = InfiniteFullyConnected(depth, activation, 2.0, 0.1)(x)
    return x, Problem(kernel, points(count, 1, seed=2)[:, 0], ridge)


def draws(x, width, members, depth=2, activation="relu", seed=3):
    config = FullyConnected(depth, width, activation, 2.0, 0.1)
    population = Population(config.build(x.shape[1], generator()))
    return population.kernels(population.draw(members, generator(seed), x), x)


def test_the_contraction_is_the_papers_formula():
    """Same draws, P^4 tensor against scalars."""
    x, held = problem()
    kernels = draws(x, 4, 500)
    contracted = correction(held, torch.cat([kernels] * 3), blocks=3).cumulant
    torch.testing.assert_close(contracted[0], paper_correction(held, fourth_cumulant(kernels)))


def test_evidence_is_the_contraction_with_the_hermite_polynomial():
    x, held = problem(count=2)
    kernels = draws(x, 4, 300)
    u = fourth_cumulant(kernels)[:2, :2, :2, :2]
    a, k = held.alpha(), torch.linalg.inv(held.regularised())
    six = 6 * torch.einsum("abcd,ab,c,d", u, k, a, a)
    three = 3 * torch.einsum("abcd,ab,cd", u, k, k)
    expected = (torch.einsum("abcd,a,b,c,d", u, a, a, a, a) - six + three) / 24
    got = correction(held, torch.cat([kernels] * 3), blocks=3).evidence
    torch.testing.assert_close(got[0], expected)


def layer(moments, k, width):
    """E[K'_ab K'_cd] behind a linear layer of `width`, from E[K_ab K_cd], by Isserlis."""
    return moments + (moments.permute(0, 2, 1, 3) + moments.permute(0, 2, 3, 1)) / width


@pytest.mark.parametrize("depth", [2, 3])
def test_the_cumulant_of_a_linear_network_is_isserlis(depth):
    """Deep linear networks have exact fourth moments; 3^4 = 81 entries, |z| < 4."""
    x, width = points(3), 5
    population = Population(FullyConnected(depth, width, "identity").build(3, generator()))
    k = x @ x.T / 3
    moments = torch.einsum("ab,cd->abcd", k, k)
    for _ in range(depth - 1):
        moments = layer(moments, k, width)
    pairs = moments - torch.einsum("ab,cd->abcd", k, k)
    exact = pairs + pairs.permute(0, 2, 1, 3) + pairs.permute(0, 3, 2, 1)
    kernels = population.kernels(population.draw(40_000, generator(5), x), x)
    blocks = torch.stack([fourth_cumulant(part) for part in kernels.chunk(40)])
    z = (blocks.mean(0) - exact) / (blocks.std(0) / math.sqrt(40))
    assert float(z.abs().max()) < 4
    assert float((exact / (blocks.std(0) / math.sqrt(40))).abs().max()) > 20  # it could fail


def linear(width, x, xs, y, ridge):
    """Posterior mean of f(xs) of a linear network with one hidden layer after one target at x.

    There k(x, x) = k chi^2_N / N, and E[k(xs, x) | k(x, x)] is proportional to it: one integral.
    """
    k, cross, half = x * x, xs * x, width / 2

    def term(power):
        def density(u):  # u = k(x, x) / k, a Gamma(N/2) variable over its mean
            log = (half - 1) * math.log(u) - half * (u - 1)
            log -= y * y / (2 * (k * u + ridge)) + math.log(k * u + ridge) / 2
            return math.exp(log) * (k * u / (k * u + ridge)) ** power

        top = 1 + 12 / math.sqrt(width)
        return integrate.quad(density, max(1e-12, 2 - top), top, epsabs=0, epsrel=1e-11)[0]

    return cross / k * y * term(1) / term(0)


def test_what_the_expansion_leaves_falls_as_the_square():
    """Exact posterior by quadrature, exact cumulant U = 2 K^2 / N a pairing: no Monte Carlo."""
    x, xs, y, ridge = 1.1, 0.7, 1.6, 0.4
    at = torch.tensor([x, xs], dtype=torch.float64)
    k = torch.outer(at, at)
    held = Problem(k, torch.tensor([y], dtype=torch.float64), ridge)
    pairs = torch.einsum("ac,bd->abcd", k, k) + torch.einsum("ad,bc->abcd", k, k)
    u = pairs + pairs.permute(0, 2, 1, 3) + pairs.permute(0, 3, 2, 1)
    left = {}
    for width in (50, 100, 200, 400):
        first = float(paper_correction(held, u / width)[0])
        deviation = linear(width, x, xs, y, ridge) - float(held.mean()[0])
        left[width] = deviation - first
        assert abs(left[width]) < 0.2 * abs(deviation)
    ratios = [left[n] / left[2 * n] for n in (50, 100, 200)]
    assert np.allclose(ratios, 4, rtol=0.1), ratios


def test_weighted_draws_give_the_posterior_of_the_quadrature():
    """Three widths, |z| < 4."""
    x, xs, y, ridge = 1.1, 0.7, 1.6, 0.4
    at = torch.tensor([[x], [xs]], dtype=torch.float64)
    held = Problem(at @ at.T, torch.tensor([y], dtype=torch.float64), ridge)
    for width in (2, 4, 16):
        population = Population(FullyConnected(2, width, "identity").build(1, generator()))
        kernels = population.kernels(population.draw(40_000, generator(width), at), at)
        found = weighted_posterior(held, kernels).means
        error = found.std(0) / math.sqrt(len(found))
        z = (found.mean(0) - linear_wide(width, x, xs, y, ridge)) / error
        assert float(z.abs()) < 4
        assert float(error) < 0.01


def linear_wide(width, x, xs, y, ridge):
    """The same integral over the whole half-line: widths so small that the law is not narrow."""
    u, w = np.polynomial.legendre.leggauss(300)
    u = 10 * (u + 1)
    log = (width / 2 - 1) * np.log(u) - width / 2 * (u - 1)
    k = x * x
    log -= y * y / (2 * (k * u + ridge)) + np.log(k * u + ridge) / 2
    p = w * np.exp(log)
    return xs / x * y * float((p * k * u / (k * u + ridge)).sum() / p.sum())


def test_the_expansion_holds_for_a_relu_network():
    """The exact posterior minus f_K minus f_U is a small part of the deviation at width 32."""
    x, held = problem()
    exact = weighted_posterior(held, draws(x, 32, 40_000)).means - held.mean()
    first = correction(held, draws(x, 1, 100_000, seed=7)).cumulant.mean(0) / 32
    before, after = size(exact), size(exact - first)
    assert before.value > 10 * before.stderr
    assert (after.value or 0.0) + 2 * after.stderr < before.value / 2


def test_the_kernels_shift_is_seen_at_three_maps():
    """d f_K / d K against a difference, and a mean kernel that is off at order 1/width."""
    x, held = problem(depth=3)
    shift = torch.cov(points(5, 9, seed=4))
    h = 1e-6
    moved = Problem(held.kernel + h * shift, held.targets, held.ridge).mean()
    torch.testing.assert_close(held.response(shift), (moved - held.mean()) / h, rtol=1e-4, atol=0)
    two, three = (
        size(draws(x, 8, 40_000, depth=depth).view(20, -1, 5, 5).mean(1) - k)
        for depth, k in ((2, problem()[1].kernel), (3, held.kernel))
    )
    assert (two.value or 0.0) < 4 * two.stderr + 0.02
    assert three.value > 5 * three.stderr


def test_sizes_are_free_of_the_noises_square():
    """400 vectors of norm 0.5 under noise of deviation 1: unbiased, and the error is honest."""
    truth = torch.full((6,), 0.5, dtype=torch.float64)
    found = [
        size(truth + torch.randn(20, 6, generator=generator(i), dtype=torch.float64))
        for i in range(400)
    ]
    squares = torch.tensor([(s.value or 0.0) ** 2 for s in found])
    assert abs(float(squares.mean()) - 0.25) < 4 * float(squares.std()) / 20
    z = [(s.value - 0.5) / s.stderr for s in found if s.value is not None]
    assert 0.85 < np.std(z) < 1.25
    assert size(torch.randn(4, 3, generator=generator()) * 1e-9).stderr < 1e-8
    with pytest.raises(ValueError, match="2 blocks: a size needs 3"):
        size(torch.zeros(2, 3))
    with pytest.raises(ValueError, match="blocks = 20 of 5 draws"):
        correction(problem()[1], draws(points(5), 3, 5))
