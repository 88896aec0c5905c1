"""Finite networks: frozen configurations that build modules."""

from algocapture.models.base import ModelConfig
from algocapture.models.simplified import SimplifiedTransformer
from algocapture.models.transformer import Transformer

__all__ = ["ModelConfig", "SimplifiedTransformer", "Transformer"]
