"""One run's folder, and many runs' table."""

from algocapture.store.exported import read_export, write_export
from algocapture.store.files import StoreError
from algocapture.store.lock import LockedError
from algocapture.store.run import RunFolder
from algocapture.store.table import read_table
from algocapture.store.unit import Checkpoint, UnitFolder
from algocapture.store.verify import Problem, Verified, verify

__all__ = [
    "Checkpoint",
    "LockedError",
    "Problem",
    "RunFolder",
    "StoreError",
    "UnitFolder",
    "Verified",
    "read_export",
    "read_table",
    "verify",
    "write_export",
]
