"""Infinite-width kernels: what a network computes in distribution as its width grows."""

from algocapture.kernels.empirical import empirical
from algocapture.kernels.estimate import Estimate, Estimates
from algocapture.kernels.fully_connected import InfiniteFullyConnected
from algocapture.kernels.inputs import unpad
from algocapture.kernels.transformer import InfiniteTransformer

__all__ = [
    "Estimate",
    "Estimates",
    "InfiniteFullyConnected",
    "InfiniteTransformer",
    "empirical",
    "unpad",
]
