"""What a cluster of any kind needs: an answer at its address, nodes that are large enough."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Iterator, Sequence

Need = dict[str, float]  # of a unit: resource -> how much of it


def knock(address: str | None) -> None:
    """Is somebody there? An error at once: Ray itself would try for minutes."""
    if address is not None and ":" in address:
        host, _, port = address.rpartition(":")
        if not port.isdecimal():
            raise ValueError("expected HOST:PORT or auto")
        socket.create_connection((host, int(port)), timeout=10).close()


@contextlib.contextmanager
def signals_kept() -> Iterator[None]:
    """Ray sets a handler of SIGTERM that exits; ours asks to checkpoint."""
    main = threading.current_thread() is threading.main_thread()
    held = signal.getsignal(signal.SIGTERM) if main else None
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGTERM, held)


def fits(node: dict[str, float], need: Need) -> int:
    """How many units with this need a node can run at once."""
    return int(min((node.get(k, 0.0) // v for k, v in need.items()), default=1000))


def refusal(name: str, need: Need, nodes: Sequence[Need]) -> str:
    """Why a unit can run on none of these nodes."""
    most = {k: max((node.get(k, 0.0) for node in nodes), default=0.0) for k in need}
    wanted, had = (", ".join(f"{v:g} {k}" for k, v in d.items()) for d in (need, most))
    return (
        f"{name} needs {wanted} on one node; the most there is: {had}. Ask for less, or add a node"
    )
