"""The edge radius of a random geometric graph on the cube [-1, 1]^d, and the mean degree it gives.

Two uniform points differ along each axis by t with density 1 - t/2 on [0, 2]; on the torus by
the shorter way round, uniform on [0, 1]. P(distance <= r) is the law of a sum of d squares of
these, and the mean degree is exactly (T - 1) P(distance <= r).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import fresnel

SIDE = 2.0
FREQUENCIES = 1 << 16  # the Fourier tail is below 1e-5 for d = 2 and falls with d


def boundary_free_radius(degree: float, size: int, dimension: int) -> float:
    """Dall & Christensen (2002), Eq. (7): `degree` is the volume of a ball times T / volume."""
    log_ball = dimension / 2 * math.log(math.pi) - math.lgamma(dimension / 2 + 1)
    log_power = math.log(degree / size) + dimension * math.log(SIDE) - log_ball
    return math.exp(log_power / dimension)


@lru_cache(maxsize=4096)
def corrected_radius(degree: float, size: int, dimension: int, torus: bool) -> float:
    """The radius whose true mean degree is `degree`; the complete graph if that exceeds T - 1."""
    reach = longest(torus) * math.sqrt(dimension)
    wanted = degree / (size - 1)
    if wanted >= 1:
        return reach * (1 + 1e-3)  # beyond rounding of the coordinates
    return float(brentq(lambda r: within(r, dimension, torus) - wanted, 0.0, reach, xtol=1e-14))


def longest(torus: bool) -> float:
    """The largest difference along one axis."""
    return SIDE / 2 if torus else SIDE


def within(r: float, dimension: int, torus: bool) -> float:
    """P(|x - y| <= r) for two independent uniform points."""
    if r >= longest(torus) * math.sqrt(dimension):
        return 1.0
    if r <= longest(torus):
        return _within_short(r, dimension, torus)
    return _within_long(r, dimension, torus)


def _within_short(r: float, d: int, torus: bool) -> float:
    """Dirichlet's integrals of prod(1 - t_i/2) over the positive part of the ball.

    For d = 2 and s = r/2 (the unit square) it reads pi s^2 - 8/3 s^3 + s^4/2.
    """
    slope = 0.0 if torus else -0.5
    return sum(
        math.comb(d, k)
        * slope**k
        * (r ** (d + k) / 2**d)
        * math.pi ** ((d - k) / 2)
        / math.gamma((d + k) / 2 + 1)
        for k in range(d + 1)
    )


def _within_long(r: float, d: int, torus: bool) -> float:
    """Fourier series of the sum of squares, which lives on [0, period], where corners cut in.

    Its coefficients are powers of E exp(i w t^2), a Fresnel integral.
    """
    end, slope = longest(torus), 0.0 if torus else -0.5
    period = d * end * end
    w = 2 * np.pi * np.arange(1, FREQUENCIES + 1) / period
    sine, cosine = fresnel(end * np.sqrt(2 * w / np.pi))
    flat = np.sqrt(np.pi / (2 * w)) * (cosine + 1j * sine)
    linear = (np.exp(1j * w * end * end) - 1) / (2j * w)
    coefficients = (flat + slope * linear) ** d
    terms = coefficients * (1 - np.exp(-1j * w * r * r)) / (1j * w)
    return float(r * r / period + 2 / period * terms.real.sum())
