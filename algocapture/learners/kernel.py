"""The infinite-width predictor: kernel regression under scikit-learn's estimator contract.

f(X) = sum_nu alpha_nu K(X, X_nu), alpha = (K + ridge)^-1 y. `adapt` adds the predictor of the
residuals on further data and leaves the first one as it was: the paper's two-step protocol, which
for the NNGP is not a Bayesian update. The Monte-Carlo error of a transformer's Gram is carried
into the predictions by a jackknife over its independent replicates; a noisy Gram at a small ridge
also biases them (docs/kernels.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from algocapture.kernels.fully_connected import InfiniteFullyConnected
from algocapture.kernels.gram import Gram, Kernel, new_gram
from algocapture.learners.estimator import (
    EstimatorMixin,
    check_inputs,
    check_targets,
    root_seed,
)
from algocapture.learners.regression import Fit, regress
from algocapture.rng import Seed


class KernelPredictor(EstimatorMixin):
    """Ridge regression with an infinite-width kernel, or with a "precomputed" Gram.

    After `fit`: `n_features_in_`, `jitter_` (added to the diagonal because the Gram was singular
    in floating point), `biases_` (of a Monte-Carlo Gram).
    """

    def __init__(
        self,
        kernel: Kernel | str = InfiniteFullyConnected(),  # noqa: B008  # frozen
        kind: str = "nngp",
        ridge: float = 1e-3,
        samples: int = 4096,
        random_state: Any = 0,
        key_dim: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.kind = kind
        self.ridge = ridge
        self.samples = samples
        self.random_state = random_state
        self.key_dim = key_dim

    def fit(self, X: Any, y: Any) -> KernelPredictor:
        """Forget everything and fit."""
        ridge = self._checked_ridge()
        items = check_inputs(X, self, reset=True)
        targets = check_targets(y, len(items))
        self._shape = targets.shape[1:]
        self._seed = Seed(root_seed(self.random_state))
        self._stages: list[Fit] = []
        self._begin(items, targets, ridge)
        return self

    def adapt(self, X: Any, y: Any) -> KernelPredictor:
        """Fit the residuals of what was learnt so far on new data, as a stage of its own."""
        ridge = self._checked_ridge(fitted=True)
        self._not_precomputed("adapt")
        items = check_inputs(X, self)
        targets = self._fitted_targets(y, len(items)).to(items[0])
        self._begin(items, targets - self._mean(items), ridge)
        return self

    def extend(self, X: Any, y: Any) -> KernelPredictor:
        """More data for the current stage: its Gram grows, old entries keep every bit."""
        ridge = self._checked_ridge(fitted=True)
        self._not_precomputed("extend")
        items = check_inputs(X, self)
        targets = self._fitted_targets(y, len(items)).to(items[0])
        *earlier, stage = self._stages
        residual = targets - sum(
            (fit.mean(items) for fit in earlier), torch.zeros((), device=targets.device)
        )
        stage.gram.append(items)
        everything = torch.cat([stage.targets, residual])
        self._stages[-1] = regress(stage.gram, everything, ridge)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Means; with `return_std` also the posterior standard deviation (before any `adapt`)."""
        self._checked_ridge(fitted=True)
        items = check_inputs(X, self)
        if not return_std:
            return self._shaped(self._mean(items))
        if len(self._stages) > 1:
            raise ValueError(
                "return_std = True after adapt: the two-step predictor is not a Bayesian update "
                "and has no posterior variance; fit on all data instead"
            )
        mean, variance = self._stages[0].posterior(items)
        return self._shaped(mean), variance.sqrt().cpu().numpy()

    def predict_with_error(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Means and the standard error that the Monte-Carlo Gram gives them (0 if exact)."""
        self._checked_ridge(fitted=True)
        items = check_inputs(X, self)
        # Stages have draws of their own but are chained by residuals: each one's replicates are
        # left out in turn with the others held, and the errors add.
        mean = self._mean(items)
        variance = sum((fit.error(items).square() for fit in self._stages), torch.zeros_like(mean))
        return self._shaped(mean), self._shaped(variance.sqrt())

    def predict_at(self, X: Any, time: float) -> np.ndarray:
        """Gradient flow from 0 on half the squared error, at `time` (or math.inf), no ridge."""
        self._checked_ridge(fitted=True)
        if not (isinstance(time, int | float) and time >= 0):
            raise ValueError(f"time = {time!r}: expected a number >= 0, or math.inf")
        if len(self._stages) > 1:
            raise ValueError("predict_at after adapt: only the first stage starts from 0")
        return self._shaped(self._stages[0].flow(check_inputs(X, self), float(time)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2, averaged over outputs."""
        predicted, truth = np.asarray(self.predict(X), float), np.asarray(y, float)
        weight = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight)
        weight = weight.reshape(-1, *[1] * (truth.ndim - 1))
        center = (weight * truth).sum(0) / weight.sum()
        residual = (weight * (truth - predicted) ** 2).sum(0)
        total = (weight * (truth - center) ** 2).sum(0)
        ratio = np.divide(residual, total, out=np.ones_like(total * 1.0), where=total > 0)
        return float(1 - ratio.mean())

    def grams(self) -> list[Gram]:
        """The Gram of every stage."""
        return [fit.gram for fit in self._stages]

    def _begin(self, items: Sequence[Tensor], targets: Tensor, ridge: float) -> None:
        gram = self.new_gram()
        gram.append(items)
        self._stages.append(regress(gram, targets.to(items[0]), ridge))
        self.jitter_ = max(fit.jitter for fit in self._stages)
        self.biases_ = gram.biases

    def new_gram(self) -> Gram:
        """An empty Gram for the next stage."""
        if isinstance(self.kernel, Kernel):
            seed = self._seed.child("gram", len(self._stages))
            return new_gram(self.kernel, self.kind, self.samples, seed, self.key_dim)
        if self.kernel == "precomputed":
            return PrecomputedGram()
        raise ValueError(
            f"kernel = {self.kernel!r}: expected InfiniteTransformer(...), "
            "InfiniteFullyConnected(...) or 'precomputed'"
        )

    def _mean(self, items: Sequence[Tensor]) -> Tensor:
        return sum((fit.mean(items) for fit in self._stages[1:]), self._stages[0].mean(items))

    def _shaped(self, values: Tensor) -> np.ndarray:
        return values.reshape(len(values), *self._shape).cpu().numpy()

    def _fitted_targets(self, y: Any, inputs: int) -> Tensor:
        targets = check_targets(y, inputs)
        if targets.shape[1:] != self._shape:
            raise ValueError(
                f"y has outputs of shape {tuple(targets.shape[1:])}, fit had {tuple(self._shape)}"
            )
        return targets.reshape(len(targets), -1)

    def _not_precomputed(self, verb: str) -> None:
        if self.kernel == "precomputed":
            raise ValueError(f"{verb} with kernel = 'precomputed': give a kernel, or fit anew")

    def _checked_ridge(self, fitted: bool = False) -> float:
        if fitted:
            self.check_is_fitted()
        ridge = self.ridge
        if not (isinstance(ridge, int | float) and math.isfinite(ridge) and ridge >= 0):
            raise ValueError(f"ridge = {ridge!r}: expected a finite number >= 0")
        return float(ridge)


class PrecomputedGram:
    """Rows of a Gram that the user made: fit gets (P, P), predict (S, P)."""

    biases: tuple[str, ...] = ()

    def append(self, items: Sequence[Tensor]) -> None:
        rows = torch.cat(list(items))
        if rows.shape[0] != rows.shape[1]:
            raise ValueError(f"X has shape {tuple(rows.shape)}, a precomputed Gram must be square")
        self._gram = rows

    def matrix(self) -> Tensor:
        return self._gram[None]

    def cross(self, items: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        rows = torch.cat(list(items))[None]
        return rows, torch.full(rows.shape[:2], math.nan, dtype=rows.dtype)

    def flops(self, items: Sequence[Tensor], appended: bool = False) -> int:
        return 0
