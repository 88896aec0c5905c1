"""Finite networks: frozen configurations that build modules."""

from algocapture.models.base import ModelConfig
from algocapture.models.transformer import Transformer

__all__ = ["ModelConfig", "Transformer"]
