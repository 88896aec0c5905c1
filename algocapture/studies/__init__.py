"""Measurements that are no capture tests: what the paper's statements say, measured."""

from algocapture.studies.base import Study

__all__ = ["Study"]
