"""What scikit-learn asks of an estimator, without importing it: a user may not have it.

Its classes (tags, NotFittedError) are used when it is there.
"""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor


class NotFitted(ValueError, AttributeError):
    """predict before fit."""


class EstimatorMixin:
    """Parameters are the arguments of __init__, stored as given."""

    n_features_in_: int
    kernel: Any
    _dtype: torch.dtype  # of the inputs given to fit; later ones are converted

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: Any) -> EstimatorMixin:
        known = self._parameter_names()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}, only {known}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        held = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({held})"

    def __sklearn_is_fitted__(self) -> bool:
        return "n_features_in_" in vars(self)

    def check_is_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            loaded = sys.modules.get("sklearn.exceptions")
            error = loaded.NotFittedError if loaded else NotFitted
            raise error(f"this {type(self).__name__} is not fitted: call fit first")

    def __sklearn_tags__(self) -> Any:
        utils = import_module("sklearn.utils")  # only scikit-learn calls this
        precomputed = isinstance(self.kernel, str)
        return utils.Tags(
            estimator_type="regressor",
            target_tags=utils.TargetTags(required=True, multi_output=True),
            regressor_tags=utils.RegressorTags(),
            input_tags=utils.InputTags(pairwise=precomputed),
        )


def root_seed(random_state: Any) -> int:
    """scikit-learn's convention, except that None is 0: a predictor is repeatable."""
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise ValueError(f"random_state = {random_state!r}: expected an integer >= 0 or None")
    return int(random_state)


def check_inputs(X: Any, estimator: EstimatorMixin, reset: bool = False) -> list[Tensor]:
    """A list of (T_i, d) tensors: from (P, T, d), a list of (T_i, d), or (P, d) as T = 1."""
    if isinstance(X, list | tuple) and X and isinstance(X[0], Tensor):
        items = [_floating(x) for x in X]
    else:
        array = _floating(X if isinstance(X, Tensor) else _numeric("X", X))
        if array.ndim == 2:
            array = array[:, None, :]
        if array.ndim != 3:
            raise ValueError(
                f"X has shape {tuple(array.shape)}, expected (P, d), (P, T, d) or a list of "
                "(T_i, d). Reshape your data"
            )
        _not_empty(array)
        items = list(array.unbind(0))
    if not all(torch.isfinite(x).all() for x in items):
        raise ValueError("X contains NaN or infinity: remove or replace them")
    features = items[0].shape[1]
    if reset:
        estimator.n_features_in_, estimator._dtype = features, items[0].dtype
    elif features != estimator.n_features_in_:
        name = type(estimator).__name__
        raise ValueError(
            f"X has {features} features, but {name} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    return [x.to(estimator._dtype) for x in items]


def _not_empty(array: Tensor) -> None:
    if array.shape[0] == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={tuple(array.shape)})")
    if array.numel() == 0:
        shape = (array.shape[0], array.shape[2])
        raise ValueError(f"0 feature(s) (shape={shape}) while a minimum of 1 is required.")


def check_targets(y: Any, inputs: int) -> Tensor:
    """Real targets (P,) or (P, outputs), one for each input."""
    if y is None:
        raise ValueError("y is None: requires y to be passed, but the target y is None")
    targets = _floating(y if isinstance(y, Tensor) else _numeric("y", y))
    if targets.ndim not in (1, 2) or 0 in targets.shape[1:]:
        raise ValueError(f"y has shape {tuple(targets.shape)}, expected (P,) or (P, outputs)")
    if not torch.isfinite(targets).all():
        raise ValueError("y contains NaN or infinity: remove or replace them")
    if len(targets) != inputs:
        raise ValueError(f"y has {len(targets)} targets for {inputs} inputs: inconsistent")
    return targets


def _numeric(name: str, values: Any) -> np.ndarray:
    if type(values).__module__.startswith("scipy.sparse"):
        raise TypeError(f"{name} is sparse: dense data is required; use .toarray()")
    array = np.asarray(values)
    if array.dtype.kind == "c":
        raise ValueError(f"{name}: Complex data not supported")
    if array.dtype.kind in "OUS":
        try:
            array = array.astype(np.float64)
        except TypeError as error:
            raise TypeError(f"{name}: argument must be a string or a number ({error})") from error
    return array


def _floating(array: Any) -> Tensor:
    tensor = array if isinstance(array, Tensor) else torch.from_numpy(np.array(array, order="C"))
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.double()
