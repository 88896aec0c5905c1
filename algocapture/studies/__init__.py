"""Measurements that are no capture tests: what the paper's statements say, measured."""

from algocapture.studies.base import Study
from algocapture.studies.convergence import Convergence
from algocapture.studies.epths import Epths
from algocapture.studies.kernel_errors import KernelErrors
from algocapture.studies.lemmas import Lemmas
from algocapture.studies.table1 import Table1

__all__ = ["Convergence", "Epths", "KernelErrors", "Lemmas", "Study", "Table1"]
