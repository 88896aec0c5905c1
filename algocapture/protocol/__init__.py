"""The definition of algorithmic capture, made executable."""

from algocapture.protocol.engine import Engine
from algocapture.protocol.events import Decided, Event, Looked, Trained
from algocapture.protocol.plan import Incremental, Limits, Protocol, WholeInterval

__all__ = [
    "Decided",
    "Engine",
    "Event",
    "Incremental",
    "Limits",
    "Looked",
    "Protocol",
    "Trained",
    "WholeInterval",
]
