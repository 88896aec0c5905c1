"""A run's folder as curves and a verdict. No torch: `verdict` answers at once."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from algocapture.stats import Curve, Facts, Verdict, judge
from algocapture.store import RunFolder, StoreError
from algocapture.store.contents import META, need, wrong_evaluations, wrong_test
from algocapture.store.shape import mismatch
from algocapture.store.sweep import sweep_runs

Stage = dict[str, Any]
PAC = "PacReplication"


@dataclass(frozen=True)
class Summary:
    """One run as the verdict and the report read it."""

    path: Path
    identity: dict[str, Any]
    extension: dict[str, Any]
    meta: dict[str, Any]
    stages: dict[int, list[Stage]]  # by seed
    complete: bool
    recipe: str | None = None  # SHA-256 of the user's own file
    evaluations: list[dict[str, Any]] = field(default_factory=list)  # rows of `algocapture eval`

    @property
    def delta(self) -> float:
        return float(self.identity["protocol"]["delta"])

    @property
    def cumulative(self) -> bool:
        return bool(self.identity["protocol"]["type"] != "WholeInterval")

    def curves(self) -> list[Curve]:
        """The curve of each seed that has passed or been censored at T0."""
        if self.identity["protocol"]["type"] == PAC:
            raise StoreError(
                f"{self.path} is a replication with a fixed budget, which has no curve: "
                "`algocapture verdict` says what it shows"
            )
        return [curve(s, of, self.cumulative) for s, of in self.stages.items() if of]

    def facts(self) -> Facts:
        """What is stated with the verdict: baselines at T0 and at the largest size passed."""
        passed = [stage for of in self.stages.values() for stage in of if stage.get("baselines")]
        sizes = sorted({stage["size"] for stage in passed}) or [0]
        first, last = (_baselines(passed, size) for size in (sizes[0], sizes[-1]))
        return Facts(delta=self.delta, baselines=last, first_baselines=first)

    def verdict(self) -> Verdict:
        margin, confidence = self.identity["margin"], self.identity["confidence"]
        return judge(self.curves(), margin, confidence, self.facts())

    @cached_property
    def judged(self) -> tuple[Verdict | None, str]:
        """The verdict, or None and the reason why the curves allow none."""
        self.curves()  # curves that cannot be read are an error, not a reason
        try:
            return self.verdict(), ""
        except ValueError as error:
            return None, str(error)

    def to_json(self) -> dict[str, Any]:
        """What `verdict --json` prints."""
        verdict = self.verdict()
        return {
            **verdict.to_json(),
            "delta": self.delta,
            "complete": self.complete,
            "sentence": verdict.sentence(self.delta),
            "curves": [
                {
                    "seed": held.seed,
                    "sizes": list(held.sizes),
                    "spent": list(held.spent),
                    "spent_low": list(held.spent_low or held.spent),
                    "censored": held.censored,
                }
                for held in self.curves()
            ],
        }


def _baselines(stages: list[Stage], size: int) -> dict[str, float]:
    """Error of each shortcut at a size, averaged over seeds."""
    there = [stage["baselines"] for stage in stages if stage["size"] == size]
    names = sorted({name for errors in there for name in errors})
    return {n: float(np.mean([errors[n] for errors in there if n in errors])) for n in names}


class NothingDecidedError(StoreError):
    """A run without a stage yet."""


def summarise_sweep(path: Path) -> list[Summary]:
    """The runs of a sweep with a decided stage; a damaged one is a StoreError."""
    found = []
    for name in sweep_runs(path):
        with contextlib.suppress(NothingDecidedError):
            found.append(summarise(path / name))
    if not found:
        raise NothingDecidedError(f"no run of the sweep {path} has a decided stage yet")
    return found


def summarise(path: Path | str) -> Summary:
    """Read a run, finished or not; damaged files are a StoreError."""
    run = RunFolder(path)
    if run.is_study:
        raise StoreError(f"{run.path} is a study: `algocapture report` writes its tables anew")
    if wrong := wrong_test(run.identity):
        raise StoreError(f"{run.path}/config.json is not that of a capture test: {wrong}")
    stages = {seed: run.stages(seed) for seed in run.seeds()}
    for stage in (stage for of in stages.values() for stage in of):
        need(stage, "size", "outcome")
    if not any(stages.values()):
        raise NothingDecidedError(
            f"{run.path} has no decided stage yet: `algocapture resume` continues it"
        )
    complete = run.read_result() == run.result_of(stages)
    notes = [name for name in run.notes() if name.startswith("eval-")]
    evaluations = [row for name in notes for row in _evaluations(run, name)]
    return Summary(
        run.path, run.identity, run.extension, _meta(run), stages, complete,
        recipe=run.recipe, evaluations=evaluations,
    )  # fmt: skip


def _evaluations(run: RunFolder, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = run.read_note(name)
    if wrong := wrong_evaluations(rows):
        raise StoreError(f"{run.path}/notes/{name}.json holds no evaluations: {wrong}")
    return rows


def _meta(run: RunFolder) -> dict[str, Any]:
    """Facts about hosts decide nothing: those that cannot be shown are left out."""
    meta = run.read_meta()
    return {} if mismatch(meta, META) else meta


def curve(seed: int, stages: list[Stage], cumulative: bool) -> Curve:
    """P(T) of one seed from its decided stages."""
    try:
        return Curve(
            sizes=[stage["size"] for stage in stages],
            spent=[stage["spent"] for stage in stages],
            spent_low=[stage["spent_low"] for stage in stages],
            censored=stages[-1]["outcome"] == "censored",
            cumulative=cumulative,
            seed=seed,
        )
    except KeyError as error:
        raise StoreError(f"the stages of seed {seed} lack the field {error}") from error
