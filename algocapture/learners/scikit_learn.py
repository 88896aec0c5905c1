"""The infinite-width kernel as one of scikit-learn's, which this module alone imports.

    GaussianProcessRegressor(WidthKernel(InfiniteFullyConnected(3)), alpha=1e-3).fit(X, y)
    KernelRidge(kernel="precomputed").fit(k(X), y).predict(k(Xs, X))          # k = WidthKernel()

Rows are inputs: of a transformer `tokens` tokens one after the other. There are no hyperparameters
for scikit-learn to optimise. The rows of a Monte-Carlo kernel belong to the training set that was
compared with itself last (held.py); its error bars are `KernelPredictor.predict_with_error`'s.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.gaussian_process.kernels import Kernel as Base
from torch import Tensor

from algocapture.kernels.checks import check_count, check_finite
from algocapture.kernels.fully_connected import InfiniteFullyConnected
from algocapture.kernels.gram import Kernel
from algocapture.learners.held import Held


class WidthKernel(Base):  # type: ignore[misc]  # untyped
    """NNGP or NTK of an infinitely wide network."""

    def __init__(
        self,
        kernel: Kernel = InfiniteFullyConnected(),  # noqa: B008  # frozen
        kind: str = "nngp",
        tokens: int = 1,
        samples: int = 4096,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.kind = kind
        self.tokens = tokens
        self.samples = samples
        self.random_state = random_state

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        if eval_gradient and Y is not None:
            raise ValueError("eval_gradient = True: gradients are of k(X, X), Y must be None")
        x = self._inputs("X", X)
        gram = self._function()(x, x if Y is None else self._inputs("Y", Y)).numpy()
        return (gram, np.empty((*gram.shape, 0))) if eval_gradient else gram

    def diag(self, X: Any) -> np.ndarray:
        return self._function().diagonal(self._inputs("X", X)).numpy()

    def is_stationary(self) -> bool:
        return False

    def _function(self) -> Held:
        settings = self.kernel, self.kind, self.samples, self.random_state
        if getattr(self, "_settings", None) != settings:
            self._settings, self._held = settings, Held(*settings)
        return self._held

    def _inputs(self, name: str, rows: Any) -> Tensor:
        check_count("tokens", self.tokens)
        array = torch.from_numpy(np.array(rows, order="C"))
        array = array if array.is_floating_point() else array.double()
        if array.ndim != 2 or 0 in array.shape or array.shape[1] % self.tokens:
            raise ValueError(
                f"{name} has shape {tuple(array.shape)}, expected (P, d) with d a multiple of "
                f"tokens = {self.tokens}"
            )
        return check_finite(name, array).unflatten(1, (self.tokens, -1))
