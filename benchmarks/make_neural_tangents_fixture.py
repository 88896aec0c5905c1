"""Kernels of fully-connected networks by neural-tangents, saved for tests/kernels.

neural-tangents is archived and needs an environment of its own (2.1 GB, Python 3.11):

    python3.11 -m venv nt-venv
    nt-venv/bin/pip install neural-tangents==0.6.5 jax==0.4.23 jaxlib==0.4.23 numpy==1.26.4 \
        scipy==1.12.0 tensorflow==2.15.1 tf2jax==0.3.6 ml-dtypes==0.3.2
    nt-venv/bin/python benchmarks/make_neural_tangents_fixture.py tests/kernels/neural_tangents.json
"""

from __future__ import annotations

import json
import sys

WEIGHT_VAR, BIAS_VAR = 1.7, 0.2


def main(path: str) -> None:
    import jax
    import numpy as np

    jax.config.update("jax_enable_x64", True)
    from neural_tangents import stax

    rng = np.random.default_rng(0)
    x1, x2 = rng.standard_normal((5, 12)), rng.standard_normal((4, 12))
    x2[0] = x1[0]
    activations = {
        "relu": stax.Relu(),
        "erf": stax.Erf(),
        "gelu": stax.Gelu(approximate=False),
        "identity": stax.Identity(),
    }
    cases = []
    for name, activation in activations.items():
        for depth in (1, 2, 4):
            dense = [stax.Dense(1, WEIGHT_VAR**0.5, BIAS_VAR**0.5) for _ in range(depth)]
            layers = [layer for d in dense for layer in (activation, d)][1:]
            kernel = stax.serial(*layers)[2]
            result = kernel(x1, x2, ("nngp", "ntk"))
            cases.append(
                {
                    "activation": name,
                    "depth": depth,
                    "nngp": np.asarray(result.nngp).tolist(),
                    "ntk": np.asarray(result.ntk).tolist(),
                }
            )
    out = {
        "made_with": "neural-tangents 0.6.5, jax 0.4.23, float64",
        "weight_var": WEIGHT_VAR,
        "bias_var": BIAS_VAR,
        "x1": x1.tolist(),
        "x2": x2.tolist(),
        "cases": cases,
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(out, file)
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
