"""The theorem on kernel evaluation, measured: an entry's Monte-Carlo error against draws and T.

Its statement: an entry's absolute error falls as draws^-1/2 and does not grow with T. Measured
without a reference: the spread of independent estimates of the same Gram. The kernel itself may
shrink with T, so that the relative error, given beside it, may grow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from algocapture.config import register
from algocapture.kernels import InfiniteTransformer
from algocapture.stats.findings import Chart, Findings, Row
from algocapture.stats.power import Exponent, power_law
from algocapture.studies.base import Study
from algocapture.types import torch_generator

ENSEMBLES = {"fixed-d": "fixed d", "identity": "Sigma' = I"}
KINDS = ("nngp", "ntk")


@register
@dataclass(frozen=True)
class KernelErrors(Study):
    """One block; `repeats` independent estimates of one Gram at each T and number of draws."""

    kernel: InfiniteTransformer = InfiniteTransformer(1, "gelu", 1.7, 0.2)  # noqa: RUF009
    sizes: tuple[int, ...] = (8, 16, 32, 64, 128, 256)
    draws: tuple[int, ...] = (16, 64, 256)
    repeats: int = 8
    features: int = 16  # of the tokens where d is fixed

    def parts(self) -> tuple[str, ...]:
        return tuple(f"{name}-t{size}" for name, size in product(ENSEMBLES, self.sizes))

    def measure(self, part: str) -> list[Row]:
        name, _, size = part.rpartition("-t")
        device = torch.device(self.device)
        x = self._tokens(name, int(size), part).to(device)
        generator = torch_generator(self.seed(part).child("scores"), device)
        rows = []
        for draws in self.draws:
            runs = [
                self.kernel.estimate(x, samples=draws, generator=generator, kinds=KINDS)
                for _ in range(self.repeats)
            ]
            for kind in KINDS:
                values = torch.stack([run[kind].value for run in runs]).flatten(1)
                head = {"ensemble": ENSEMBLES[name], "kind": kind, "tokens": int(size)}
                rows.append(head | {"draws": runs[0].draws} | spread(values))
        return rows

    def _tokens(self, name: str, size: int, part: str) -> Tensor:
        if name == "identity":
            return torch.eye(size)[None] * size**0.5
        generator = torch_generator(self.seed(part).child("tokens"))
        return torch.randn(1, size, self.features, generator=generator)

    def findings(self, rows: Mapping[str, list[Row]]) -> Findings:
        held = [dict(row) for part in rows.values() for row in part]
        for row in held:
            row["line"] = f"{row['kind'].upper()}, {row['ensemble']}"
        most = [row for row in held if row["draws"] == max(r["draws"] for r in held)]
        lines = list(dict.fromkeys(row["line"] for row in held))
        exponents = [self._in_draws(held, line) for line in lines]
        exponents += [self._in_tokens(most, line) for line in lines]
        longest = [row for row in held if row["tokens"] == self.sizes[-1]]
        title = "Absolute error of an entry at"
        charts = (
            _chart("in-tokens", f"{title} {most[0]['draws']} draws", "tokens"),
            _chart("in-draws", f"{title} T = {self.sizes[-1]}", "draws"),
        )
        tables = {"errors": held, "in-tokens": most, "in-draws": longest}
        return Findings("Error of a kernel estimate", tables, tuple(exponents), charts)

    def _in_draws(self, rows: list[Row], line: str) -> Exponent:
        """One slope for all T: errors are divided by their geometric mean at each T."""
        held = [row for row in rows if row["line"] == line]
        means = {
            size: np.exp(np.mean([np.log(r["error"]) for r in held if r["tokens"] == size]))
            for size in self.sizes
        }
        x = [float(row["draws"]) for row in held]
        y = [row["error"] / means[row["tokens"]] for row in held]
        errors = [row["stderr"] / means[row["tokens"]] for row in held]
        what = f"error in draws: {line}"
        return power_law(x, y, what, stderr=errors, theory="-1/2", bar=(-0.55, -0.45))

    def _in_tokens(self, rows: list[Row], line: str) -> Exponent:
        held = [row for row in rows if row["line"] == line]
        x, y = ([float(row[name]) for row in held] for name in ("tokens", "error"))
        errors = [row["stderr"] for row in held]
        what, bar = f"error in T: {line}", (-10.0, 0.0)
        return power_law(x, y, what, stderr=errors, theory="<= 0", bar=bar)


def spread(values: Tensor) -> dict[str, Any]:
    """The root mean square over entries of their standard deviation over the rows of `values`."""
    n = len(values)
    squares = (values - values.mean(0)).square().mean(1).double()
    variance = float(squares.sum()) / (n - 1)
    error = variance**0.5
    # Of the variance: the deviations of the estimates are nearly independent.
    stderr = float(squares.std()) * n**0.5 / (n - 1) / (2 * error)
    scale = float(values.double().square().mean()) ** 0.5
    return {"error": error, "stderr": stderr, "relative": error / scale}


def _chart(name: str, title: str, x: str) -> Chart:
    label = {"tokens": "T", "draws": "draws"}[x]
    return Chart(name, title, name, x, "error", label, series="line", error="stderr")
