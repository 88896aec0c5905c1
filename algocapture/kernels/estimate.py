"""Monte-Carlo results: values with standard errors that know how to continue.

At depth 1 the attention moments of all blocks of draws are pooled and go through the token-wise
map once; the standard error is the jackknife over blocks (draws are shared by all entries, so
that entries are correlated but each has its own error). At depth >= 2 the estimate of a block
enters the next block's nonlinear maps: only independent replicates of the whole chain tell the
error (per-draw errors are 3 to 100 times too small), and a bias of order 1/draws remains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial

import torch
from torch import Tensor

from algocapture.kernels.checks import check_count

Values = dict[str, Tensor]
MOST_PARTS = (
    64  # beyond, neighbours are merged: memory stays bounded and the error is as well known
)


@dataclass(frozen=True, eq=False)
class Estimate:
    """A Monte-Carlo mean, the standard error of each entry, and how they were made."""

    value: Tensor
    draws: int
    replicates: int  # independent parts behind the standard error: its degrees of freedom + 1
    dtype: str
    sampler: str
    biases: tuple[str, ...]
    spread: Callable[[], Tensor] = field(repr=False)

    @cached_property
    def stderr(self) -> Tensor:
        """Standard error of each entry, computed when first asked for."""
        return self.spread()

    @property
    def relative_error(self) -> float:
        """Root mean square standard error over root mean square value."""
        scale = self.value.square().mean().sqrt()
        error = self.stderr.square().mean().sqrt()
        return 0.0 if error == 0 else float(error / scale)


@dataclass(frozen=True)
class Work:
    """One estimation: how to draw a part and how to turn a mean of parts into values."""

    run: Callable[[int], Values]  # draws -> what a part leaves; advances the generator
    finish: Callable[[Values], Values]  # the identity at depth >= 2
    settle: Callable[[Tensor], tuple[Tensor, float]]  # PSD projection and its relative size
    size: int  # draws of one run
    dtype: str
    sampler: str
    biases: tuple[str, ...]


class Estimates(Mapping[str, Estimate]):
    """`e["nngp"]`, `e["ntk"]`: estimates from the same draws, which `more` and `until` continue.

    `parts` are means over `runs` independent runs each.
    """

    def __init__(self, work: Work, parts: Sequence[Values], runs: int = 1) -> None:
        self._work, self._parts, self._runs = work, list(parts), runs
        while len(self._parts) > MOST_PARTS:
            if len(self._parts) % 2:
                self._parts.append(_part(work, self._runs))
            pairs = zip(self._parts[::2], self._parts[1::2], strict=True)
            self._parts, self._runs = [_mean(pair) for pair in pairs], 2 * self._runs
        self._estimates = _summarise(work, self._parts, self._runs)

    @classmethod
    def start(cls, work: Work, parts: int) -> Estimates:
        return cls(work, [_part(work, 1) for _ in range(parts)])

    def __getitem__(self, kind: str) -> Estimate:
        if kind not in self._estimates:
            raise KeyError(f"{kind!r} was not estimated, only {', '.join(self._estimates)}")
        return self._estimates[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self._estimates)

    def __len__(self) -> int:
        return len(self._estimates)

    @property
    def draws(self) -> int:
        return len(self._parts) * self._runs * self._work.size

    def jackknife(self, kind: str) -> list[Tensor]:
        """The value without each independent part: what carries the error into functions of it."""
        return [values[kind] for values in _leave_one_out(self._work, self._parts)]

    def more(self, samples: int) -> Estimates:
        """Continue with at least `samples` further draws, in runs of the same size."""
        check_count("samples", samples)
        count = -(-samples // (self._work.size * self._runs))
        new = [_part(self._work, self._runs) for _ in range(count)]
        return Estimates(self._work, self._parts + new, self._runs)

    def until(self, rtol: float, limit: int = 10_000_000) -> Estimates:
        """Continue until every kind's `relative_error` is at most rtol."""
        if not (isinstance(rtol, int | float) and math.isfinite(rtol) and rtol > 0):
            raise ValueError(f"rtol = {rtol!r}: expected a finite number > 0")
        now = self
        while (error := max(e.relative_error for e in now.values())) > rtol:
            if now.draws >= limit:
                raise ValueError(
                    f"rtol = {rtol:g} not reached after {now.draws} draws (now {error:.3g}): "
                    "raise limit"
                )
            wanted = now.draws * min((error / rtol) ** 2 - 1, 4.0) * 1.1
            now = now.more(max(1, min(int(wanted) + 1, limit - now.draws)))
        return now


def _mean(parts: Sequence[Values]) -> Values:
    return {
        k: sum(p[k] for p in parts[1:]) / len(parts) + parts[0][k] / len(parts) for k in parts[0]
    }


def _part(work: Work, runs: int) -> Values:
    return _mean([work.run(work.size) for _ in range(runs)])


def _leave_one_out(work: Work, parts: Sequence[Values]) -> Iterator[Values]:
    mean, n = _mean(parts), len(parts)
    for part in parts:
        yield work.finish({k: mean[k] + (mean[k] - part[k]) / (n - 1) for k in mean})


def _spread(work: Work, parts: Sequence[Values], values: Values) -> Values:
    """Jackknife standard errors; infinite where there is nothing to compare."""
    n = len(parts)
    if n == 1:
        return {k: torch.full_like(v, math.inf) for k, v in values.items()}
    first = {k: torch.zeros_like(v) for k, v in values.items()}
    second = {k: torch.zeros_like(v) for k, v in values.items()}
    for left_out in _leave_one_out(work, parts):
        for k, v in values.items():
            step = left_out[k] - v
            first[k] += step
            second[k] += step.square()
    return {
        k: ((second[k] - first[k].square() / n).clamp(min=0) * (n - 1) / n).sqrt() for k in values
    }


def _summarise(work: Work, parts: Sequence[Values], runs: int) -> dict[str, Estimate]:
    values = work.finish(_mean(parts))
    parts = tuple(parts)

    @cache
    def errors() -> Values:  # one pass for all kinds
        return _spread(work, parts, values)

    out = {}
    for kind, value in values.items():
        if not torch.isfinite(value).all():
            raise ValueError(
                f"the {kind} kernel left the range of {value.dtype}: rescale the inputs "
                "(layer-0 covariances x1 x2^T / d of order 1), or use float64"
            )
        settled, moved = work.settle(value)
        biases = work.biases
        if moved > 0:
            biases = (*biases, f"positive semi-definite projection: relative change {moved:.2g}")
        draws = len(parts) * runs * work.size
        out[kind] = Estimate(
            settled,
            draws,
            len(parts),
            work.dtype,
            work.sampler,
            biases,
            partial(lambda kind: errors()[kind], kind),
        )
    return out
