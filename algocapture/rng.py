"""A tree of named seeds: the same path gives the same stream, on any machine.

A `Seed` is a root and a path of names. Its number is the SHA-256 of both, so that
streams of different paths are independent, whatever the order in which they are used,
and adding a new consumer of randomness never moves an old one.

    >>> Seed(0).child("train", 3).integer() == Seed(0).child("train").child(3).integer()
    True
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Seed:
    """A node of the seed tree. Nothing is drawn here: `integer` and `numpy` are pure functions."""

    root: int
    path: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.root, bool) or not isinstance(self.root, int) or self.root < 0:
            raise ValueError(f"root seed must be an integer >= 0, got {self.root!r}")
        if not isinstance(self.path, tuple):
            raise ValueError(f"a seed's path is a tuple, got {self.path!r}")
        for name in self.path:
            if isinstance(name, bool) or not isinstance(name, str | int):
                raise ValueError(f"a seed's path holds strings and integers, got {name!r}")

    def child(self, *names: str | int) -> Seed:
        """The seed of a named consumer below this one."""
        return Seed(self.root, self.path + names)

    def _digest(self) -> bytes:
        # JSON separates "1" from 1 and ("a", "b") from ("ab",): distinct paths, distinct digests.
        # Written by hand: json.dumps takes ten times as long where a training step has just
        # filled the processor's cache.
        names = ",".join(
            encode_basestring_ascii(name) if isinstance(name, str) else int.__repr__(name)
            for name in (self.root, *self.path)
        )
        return hashlib.sha256(f"algocapture.rng/1:[{names}]".encode("ascii")).digest()

    def integer(self) -> int:
        """A number in [0, 2**63), fit for any library's seed argument."""
        return int.from_bytes(self._digest()[:8], "little") >> 1

    def numpy(self) -> np.random.Generator:
        """A fresh numpy generator at the start of this seed's stream."""
        return np.random.Generator(self._bits())

    def words(self, number: int) -> NDArray[np.uint32]:
        """As many 32-bit words as `numpy().integers` begins with, without making a generator."""
        raw = self._bits().random_raw(-(-number // 2)).astype("<u8", copy=False)  # low word first
        return raw.view("<u4")[:number]

    def _bits(self) -> np.random.PCG64:
        words = np.frombuffer(self._digest(), dtype="<u4").astype(np.uint32)
        return np.random.PCG64(np.random.SeedSequence(words))
