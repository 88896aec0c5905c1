"""How tight the paper's lemmas are: the largest left-hand sides that a search finds."""

from __future__ import annotations

from algocapture.studies.lemmas import Lemmas

COST = {"cpu": "1 core, 1 min, 1.4 GB"}


def study() -> Lemmas:
    return Lemmas()
