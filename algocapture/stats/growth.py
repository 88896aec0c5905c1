"""How cost may grow with size: the family of the adaptation exponent, and rival laws.

With u = log(T/T0) the cost per unit of u grows as exp(kappa u), so
    P(T) - P0 = c (exp(kappa u) - 1) / kappa,    c u at kappa = 0.
"""

from __future__ import annotations

import numpy as np

from algocapture.stats.curve import Curve
from algocapture.stats.sequential import Floats

LAWS = ("bounded", "log", "log squared", "power", "linear")


def log_shape(curve: Curve, kappa: Floats) -> Floats:
    """log of each stage's expected cost over c; kappa[..., None] against stages."""
    u = curve.log_sizes()
    start = u[:-1] if curve.cumulative else np.zeros(len(u) - 1)
    width = u[1:] - start
    # int_a^b exp(k u) du = (b - a) exp(k (a + b)/2) sinh(x)/x at x = k (b - a)/2
    kappa = np.asarray(kappa, dtype=np.float64)[..., None]
    return np.log(width) + kappa * (start + width / 2) + _log_sinhc(kappa * width / 2)


def law_shape(curve: Curve, law: str, kappa: float = 0.0) -> Floats:
    """log of each stage's expected cost, up to a constant, under a named law of growth.

    `bounded` and `power` are the family of the exponent at negative and at positive kappa.
    """
    exponents = {"bounded": min(kappa, 0.0), "log": 0.0, "power": max(kappa, 0.0)}
    if law in exponents:
        return log_shape(curve, np.array(exponents[law]))
    u = curve.log_sizes()
    total = {"log squared": u**2, "linear": np.expm1(u)}[law]
    return np.log(np.diff(total) if curve.cumulative else total[1:])


def _log_sinhc(x: Floats) -> Floats:
    """log(sinh(x)/x), even in x, without overflow."""
    x = np.abs(x)
    small = x < 1e-2
    safe = np.where(small, 1.0, x)
    large = safe + np.log1p(-np.exp(-2 * safe)) - np.log(2 * safe)
    out: Floats = np.where(small, x**2 / 6 - x**4 / 180, large)
    return out
