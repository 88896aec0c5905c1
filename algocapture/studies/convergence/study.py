"""The study: which parts there are, and what their rows say together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from algocapture.config import register
from algocapture.rng import Seed
from algocapture.stats.findings import Findings, Row
from algocapture.studies.base import Study
from algocapture.studies.convergence import bayes, flows
from algocapture.studies.convergence.families import FAMILIES
from algocapture.studies.convergence.reading import read
from algocapture.studies.convergence.sizes import Sizes

Measure = Callable[[Sizes, Seed], list[Row]]

_erf, _relu, _gelu, _transformer = FAMILIES.values()
PARTS: dict[str, Measure] = {
    "kernel-fcn3-gelu-nngp": partial(bayes.kernels, _gelu, "nngp"),
    "kernel-fcn3-gelu-ntk": partial(bayes.kernels, _gelu, "ntk"),
    "kernel-transformer-nngp": partial(bayes.kernels, _transformer, "nngp"),
    "posterior-fcn2-erf": partial(bayes.posterior, _erf),
    "posterior-fcn2-relu": partial(bayes.posterior, _relu),
    "posterior-fcn3-gelu": partial(bayes.posterior, _gelu),
    "posterior-transformer": partial(bayes.posterior, _transformer),
    "langevin-fcn2-erf": partial(bayes.trained, _erf),
    "langevin-fcn2-relu": partial(bayes.trained, _relu),
    "langevin-transformer": partial(bayes.trained, _transformer),
    "samples-fcn2-erf": partial(bayes.samples, _erf),
    "flow-fcn2-relu": partial(flows.lazy, _relu),
    "flow-transformer": partial(flows.lazy, _transformer),
    "flow-samples-fcn2-relu": partial(flows.lazy_samples, _relu),
    "rich-fcn2-relu": partial(flows.rich, _relu),
    "rich-transformer": partial(flows.rich, _transformer),
}


@register
@dataclass(frozen=True)
class Convergence(Study):
    """Finite networks against the NNGP and NTK predictors, over width N and samples P."""

    scale: float = 1.0  # multiplies the numbers of draws, chains and networks
    samples: int = 4  # P where it does not vary
    counts: tuple[int, ...] = (2, 4, 8, 16, 32)  # P where it does

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.scale <= 1000:
            raise ValueError(f"scale must lie in (0, 1000], got {self.scale!r}")
        if self.samples < 1 or len(set(self.counts)) < 3 or min(self.counts) < 1:
            raise ValueError(
                f"samples = {self.samples!r}, counts = {self.counts!r}: numbers >= 1, "
                "and three or more different counts"
            )

    def parts(self) -> tuple[str, ...]:
        return tuple(PARTS)

    def measure(self, part: str) -> list[Row]:
        sizes = Sizes(self.scale, self.samples, self.counts, device=self.device)
        return PARTS[part](sizes, self.seed(part))

    def findings(self, rows: Mapping[str, list[Row]]) -> Findings:
        return read(rows)
