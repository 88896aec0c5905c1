"""Finite networks: frozen configurations that build modules."""

from algocapture.models.base import ModelConfig
from algocapture.models.fully_connected import FullyConnected
from algocapture.models.population import Population
from algocapture.models.simplified import SimplifiedTransformer
from algocapture.models.transformer import Transformer

__all__ = [
    "FullyConnected",
    "ModelConfig",
    "Population",
    "SimplifiedTransformer",
    "Transformer",
]
