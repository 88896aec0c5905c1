"""How tight the paper's lemmas are: a search climbs towards their bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from algocapture.complexity import lemmas
from algocapture.config import register
from algocapture.stats.findings import Findings, Row
from algocapture.stats.power import power_law
from algocapture.studies.base import Study, check_sizes
from algocapture.types import torch_generator

Objective = Callable[[Tensor, Tensor, Tensor], Tensor]


def _softmax(name: str) -> Objective:
    return lambda s1, s2, m: lemmas.softmax_norms(s1)[name]


OBJECTIVES: dict[str, tuple[str, float, Objective]] = {
    "softmax-1": ("|grad a_c| / a_c", 2.0, _softmax("(i)")),
    "softmax-2": ("|grad^2 a_c| / a_c", 6.0, _softmax("(ii)")),
    "softmax-3": ("|grad^3 a_c| / a_c", 26.0, _softmax("(iii)")),
    "softmax-jacobian": ("|J|", 2.0, _softmax("(iv)")),
    "hessian-q1": ("|grad^2 q_1|, |Sigma'| <= 1", lemmas.HESSIAN_Q1, lemmas.hessian_q1),
    "hessian-q2": ("|grad^2 q_2|, |Sigma'| <= 1", lemmas.HESSIAN_Q2, lemmas.hessian_q2),
    "trace": ("Tr(J_1^T M J_2 M^T), |M| <= 1", 4.0,
              lambda s1, s2, m: lemmas.trace_term(s1, s2, m, m).abs()),
}  # fmt: skip
LIPSCHITZ, INVERSE, LAYERNORM = "lipschitz", "inverse", "layernorm"


@register
@dataclass(frozen=True)
class Lemmas(Study):
    """Gradient ascent from `starts` random points, for each number of tokens."""

    tokens: tuple[int, ...] = (2, 3, 4, 6)
    starts: int = 32
    steps: int = 150
    lengths: tuple[int, ...] = (8, 32, 128, 512, 2048)  # orthonormal tokens before a LayerNorm
    draws: int = 20_000  # of their scores
    trials: int = 2000  # random covariances of two tokens, where the mean is exact

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sizes("tokens", self.tokens, 2)
        check_sizes("lengths", self.lengths, 1, 3)
        for name, least in {"starts": 1, "steps": 1, "trials": 1, "draws": 2}.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be >= {least}, got {getattr(self, name)!r}")

    def parts(self) -> tuple[str, ...]:
        return (*OBJECTIVES, LIPSCHITZ, INVERSE, LAYERNORM)

    def measure(self, part: str) -> list[Row]:
        if part == LIPSCHITZ:
            return [self._lipschitz()]
        if part == INVERSE:
            return self._inverse()
        if part == LAYERNORM:
            return self._layernorm()
        what, bound, objective = OBJECTIVES[part]
        return [
            _row(what, bound, climb(objective, t, self.starts, self.steps,
                                    torch_generator(self.seed(part).child(t))), t)
            for t in self.tokens
        ]  # fmt: skip

    def _lipschitz(self) -> Row:
        """The largest |Delta Sigma| over the paper's bound, for perturbations of all sizes."""
        rng, best = self.seed(LIPSCHITZ).numpy(), 0.0
        for _ in range(self.trials):
            root = rng.normal(size=(4, 4)) * 10 ** rng.uniform(-1, 0.5)
            step = rng.normal(size=(4, 4)) * 10 ** rng.uniform(-3, 0)
            before, after = root @ root.T, (root + step) @ (root + step).T
            found = np.abs(lemmas.attention_of_two(after) - lemmas.attention_of_two(before)).max()
            change = np.abs(after - before).max()
            best = max(best, found / lemmas.lipschitz_bound(np.abs(before).max(), change))
        return _row("|Delta Sigma| over its bound", 1.0, best, 2)

    def _inverse(self) -> list[Row]:
        rng = self.seed(INVERSE).numpy()
        best = {"max": 0.0, "spectral": 0.0, "sandwich": 0.0}
        for _ in range(self.trials):
            n = int(rng.integers(1, 8))
            root, ridge = rng.normal(size=(n, rng.integers(1, 8))), 10 ** rng.uniform(-2, 2)
            for name, value in lemmas.inverse_norms(root @ root.T, ridge).items():
                best[name] = max(best[name], value * ridge)
        bounds = {"max": 1.0, "spectral": 1.0, "sandwich": 0.25}
        return [_row(f"ridge * {name} norm of the inverse", bounds[name], best[name], None)
                for name in best]  # fmt: skip

    def _layernorm(self) -> list[Row]:
        rows = []
        for t in self.lengths:
            generator = torch_generator(self.seed(LAYERNORM).child(t))
            found, error = lemmas.orthonormal_sensitivity(t, self.draws, generator)
            rows.append({"T": t, "sensitivity": found, "stderr": error, "T / e": t / math.e})
        return rows

    def findings(self, rows: Mapping[str, list[Row]]) -> Findings:
        held = [row for part, of in rows.items() if part != LAYERNORM for row in of]
        grows = rows[LAYERNORM]
        broken = [row for row in held if row["found"] > row["bound"] * (1 + 1e-6)]
        best: dict[str, Row] = {}
        for row in held:
            if row["what"] not in best or row["found"] > best[row["what"]]["found"]:
                best[row["what"]] = row
        notes = (
            f"{len(broken)} of {len(held)} searches found a violation.",
            "Entries of Sigma' and M are free in [-1, 1]: more than covariances may be.",
        )
        tables = {"tightness": list(best.values()), "layernorm": grows, "searches": held}
        law = power_law(
            [row["T"] for row in grows], [row["sensitivity"] for row in grows],
            "sensitivity of a block to Sigma' over T, orthonormal tokens",
            stderr=[row["stderr"] for row in grows], theory="1: LayerNorm divides by e / T",
        )  # fmt: skip
        return Findings("How tight the lemmas are", tables, (law,), notes=notes)


def _row(what: str, bound: float, found: float, tokens: int | None) -> Row:
    return {"what": what, "T": tokens, "bound": bound, "found": found, "ratio": found / bound}


def climb(
    objective: Objective, tokens: int, starts: int, steps: int, generator: torch.Generator
) -> float:
    """The largest value met on the way up, over scores and matrices with entries in [-1, 1]."""
    kind = torch.float64
    s = torch.randn(2, starts, tokens, generator=generator, dtype=kind) * 3
    m = torch.randn(starts, tokens, tokens, generator=generator, dtype=kind) * 2
    best = 0.0
    for step in range(steps):
        s.requires_grad_(True)
        m.requires_grad_(True)
        value = objective(s[0], s[1], m.tanh())
        best = max(best, float(value.detach().max()))
        gradients = torch.autograd.grad(value.sum(), (s, m), allow_unused=True)
        length = 0.5 * 0.98**step
        s, m = (_moved(x, g, length) for x, g in zip((s, m), gradients, strict=True))
    return best


def _moved(x: Tensor, gradient: Tensor | None, length: float) -> Tensor:
    """A step of the sign of the gradient: every coordinate moves alike."""
    with torch.no_grad():
        return x.detach() if gradient is None else (x + length * gradient.sign()).detach()
