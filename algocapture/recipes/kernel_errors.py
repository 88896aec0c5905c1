"""The error of a kernel estimate against draws and T, for two ensembles: the paper's theorem."""

from __future__ import annotations

from algocapture.studies.kernel_errors import KernelErrors

COST = {"cpu": "two cores, about two minutes"}


def study() -> KernelErrors:
    return KernelErrors()
