"""Where units of work run."""

from algocapture.launch.base import (
    DONE,
    FAILED,
    INTERRUPTED,
    USAGE,
    Emit,
    Launcher,
    Outcome,
    Refused,
    Unit,
    exit_code,
)
from algocapture.launch.inline import Inline
from algocapture.launch.processes import Processes
from algocapture.launch.stop import Stop
from algocapture.launch.worker import connect

__all__ = [
    "DONE",
    "FAILED",
    "INTERRUPTED",
    "USAGE",
    "Emit",
    "Inline",
    "Launcher",
    "Outcome",
    "Processes",
    "Refused",
    "Stop",
    "Unit",
    "connect",
    "exit_code",
]
