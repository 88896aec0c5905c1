"""The kernels of small transformers by quadrature, in the plainest way that is right.

Rows of attention depend on differences of scores alone, so an expectation over two rows is a
Gaussian integral in 2 (T - 1) dimensions. Jacobians are written out; no identity is used.
"""

import itertools

import numpy as np
import torch

from algocapture.kernels.duals import activation


def _nodes(dimensions, count):
    points, weights = np.polynomial.hermite_e.hermegauss(count)
    weights = weights / weights.sum()
    grid = np.array(list(itertools.product(points, repeat=dimensions)))
    product = np.prod(np.array(list(itertools.product(weights, repeat=dimensions))), axis=1)
    return torch.tensor(grid), torch.tensor(product)


def _rows(own1, own2, cross, a, b, scale, grid, causal):
    """Attention rows a of input 1 and b of input 2 at all quadrature nodes."""
    tokens = len(cross)
    covariance = torch.empty(2 * tokens, 2 * tokens, dtype=torch.float64)
    covariance[:tokens, :tokens] = own1[a, a] * own1
    covariance[tokens:, tokens:] = own2[b, b] * own2
    covariance[:tokens, tokens:] = cross[a, b] * cross
    covariance[tokens:, :tokens] = (cross[a, b] * cross).T
    one = torch.eye(tokens, dtype=torch.float64)[1:] - torch.eye(tokens, dtype=torch.float64)[:1]
    difference = torch.block_diag(one, one)
    values, vectors = torch.linalg.eigh(difference @ covariance @ difference.T)
    scores = scale * grid @ (vectors * values.clamp(min=0).sqrt()).T
    zero = torch.zeros(len(grid), 1, dtype=torch.float64)
    rows = []
    for part, query in ((scores[:, : tokens - 1], a), (scores[:, tokens - 1 :], b)):
        full = torch.cat([zero, part], 1)
        if causal:
            full[:, query + 1 :] = -torch.inf
        rows.append(torch.softmax(full, 1))
    return rows


def _attention(own1, own2, cross, ntk, scale, projection, count, causal):
    tokens = len(cross)
    grid, weights = _nodes(2 * (tokens - 1), count)
    sigma, theta = torch.empty_like(cross), torch.empty_like(cross)
    for a, b in itertools.product(range(tokens), repeat=2):
        a1, a2 = _rows(own1, own2, cross, a, b, scale, grid, causal)
        j1 = torch.diag_embed(a1) - a1[:, :, None] * a1[:, None, :]
        j2 = torch.diag_embed(a2) - a2[:, :, None] * a2[:, None, :]

        def mean(x):
            return weights @ x

        def trace(m, n):
            return scale**2 * mean(((j1.mT @ m @ j2) * n).sum((1, 2)))  # noqa: B023

        sigma[a, b] = mean(((a1 @ cross) * a2).sum(1))
        theta[a, b] = (
            (2 if projection else 1) * sigma[a, b]
            + mean(((a1 @ ntk) * a2).sum(1))
            + (2 * cross[a, b] + ntk[a, b]) * trace(cross, cross)
            + cross[a, b] * trace(cross, ntk)
        )
    return sigma, theta


def kernels(kernel, x1, x2, count=14):
    """(NNGP, NTK) between all tokens of x1 and x2, both (T, d)."""
    phi = activation(kernel.activation)
    items = {"1": x1, "2": x2}
    pairs = ("11", "22", "12")
    sigma = {p: items[p[0]] @ items[p[1]].T / x1.shape[1] for p in pairs}
    theta = dict(sigma)
    for _ in range(kernel.depth):
        new = {
            p: _attention(
                sigma[p[0] * 2],
                sigma[p[1] * 2],
                sigma[p],
                theta[p],
                kernel.score_scale,
                kernel.output_projection,
                count,
                kernel.causal,
            )
            for p in pairs
        }
        sigma, after = {}, {}
        for p in pairs:
            q1 = new[p[0] * 2][0].diagonal()[:, None] + 0 * new[p][0]
            q2 = new[p[1] * 2][0].diagonal()[None, :] + 0 * new[p][0]
            c, one = new[p][0] / (q1 * q2).sqrt(), torch.ones_like(q1)
            slope = phi.derivative(c, one, one)
            sigma[p] = kernel.bias_var + kernel.weight_var * phi.dual(c, one, one)
            after[p] = sigma[p] + kernel.weight_var * slope * new[p][1] / (q1 * q2).sqrt()
            if kernel.layernorm_affine:
                after[p] += kernel.weight_var * (slope + phi.gain(c, one, one))
        theta = after
    return sigma["12"], theta["12"]
