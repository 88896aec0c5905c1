"""Finite networks: frozen configurations that build modules."""

from algocapture.models.base import ModelConfig

__all__ = ["ModelConfig"]
