"""Table 1 of the paper, measured: costs, errors and coefficients beside what it states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from algocapture.config import register
from algocapture.stats.findings import Chart, Findings, Row
from algocapture.stats.power import Exponent, power_law
from algocapture.studies import costs, errors
from algocapture.studies.base import Study, check_sizes

PARTS = ("forward-counts", "forward-times", "kernel-costs", "error-draws", "error-points",
         "error-length", "error-depth", "coefficients")  # fmt: skip
SIZES = {"lengths": 1, "timed_lengths": 1, "kernel_lengths": 1, "error_lengths": 1, "points": 1,
         "trained": 1, "trained_lengths": 8, "draws": 16}  # fmt: skip
SQUARE, CUBE, HALF = (1.9, 2.1), (2.8, 3.1), (-0.55, -0.45)
ATTENTION_BOUND = 64  # widths: from there attention is 90% of a practical network's products


@register
@dataclass(frozen=True)
class Table1(Study):
    """Sizes of a machine with two cores; `--set` and `--device cuda` for larger ones."""

    lengths: tuple[int, ...] = (256, 1024, 4096, 8192, 16384, 32768, 65536)  # counted, no data
    timed_lengths: tuple[int, ...] = (256, 512, 1024, 2048, 4096)
    kernel_lengths: tuple[int, ...] = (8, 16, 32, 64)
    error_lengths: tuple[int, ...] = (8, 16, 32, 64, 128, 256)
    points: tuple[int, ...] = (4, 8, 16, 32, 64)
    trained: tuple[int, ...] = (8, 16, 32, 64, 128)  # P of the predictors with coefficients
    trained_lengths: tuple[int, ...] = (8, 12, 16, 24, 32)
    draws: tuple[int, ...] = (64, 128, 256, 512, 1024, 2048)
    depths: tuple[int, ...] = (1, 2, 3, 4)
    repeats: int = 48  # independent estimates behind every error
    ridge: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in SIZES.items():
            check_sizes(name, getattr(self, name), least, 3)
        check_sizes("depths", self.depths, 1)
        if self.repeats < 3:
            raise ValueError(f"repeats must be >= 3, got {self.repeats!r}")
        if self.ridge <= 0:
            raise ValueError(f"ridge must be > 0, got {self.ridge!r}")

    def parts(self) -> tuple[str, ...]:
        return PARTS

    def measure(self, part: str) -> list[Row]:
        seed, device = self.seed(part), self.device
        common = (self.repeats, seed, device)
        few = (self.draws[0] // 4, self.draws[0] // 2, self.draws[0])
        lengths, points = self.kernel_lengths, self.points
        measured = {
            "forward-counts": lambda: costs.forward_counts(self.lengths),
            "forward-times": lambda: costs.forward_times(self.timed_lengths, device),
            "kernel-costs": lambda: costs.kernel_costs(lengths, points, few, device, seed),
            "error-draws": lambda: errors.by_draws(self.draws, *common),
            "error-points": lambda: errors.by_points(points, *common),
            "error-length": lambda: errors.by_length(self.error_lengths, *common),
            "error-depth": lambda: errors.by_depth(self.depths, *common),
            "coefficients": lambda: errors.coefficients(
                self.trained, self.trained_lengths, self.ridge, seed, device
            ),
        }
        return measured[part]()

    def findings(self, rows: Mapping[str, list[Row]]) -> Findings:
        found = [*_forward(rows), *_kernel(rows["kernel-costs"]), *_errors(rows)]
        found += _coefficients(rows["coefficients"])
        counts = rows["forward-counts"]
        ratios = [r["formula"] / r["products"] for r in [*counts, *rows["kernel-costs"]]]
        tables: dict[str, list[Row]] = {name: list(rows[name]) for name in PARTS}
        tables["forward-lengths"] = [r for r in counts if r["axis"] == "T"]
        tables["kernel-lengths"] = [r for r in rows["kernel-costs"] if r["axis"] == "T"]
        tables["alpha-points"] = [
            r | {"which": f"{r['kind']}, stage {r['stage']}"}
            for r in rows["coefficients"] if r["T"] == rows["coefficients"][0]["T"]
        ]  # fmt: skip
        tables["draws-lines"] = [
            r | {"which": f"{r['kind']}, depth {r['depth']}"} for r in rows["error-draws"]
        ]
        for kind in errors.BOTH:
            tables[f"points-{kind}"] = _pick(rows["error-points"], kind=kind)
        notes = (
            f"Products: formula and count are equal in {ratios.count(1.0)} of {len(ratios)} rows; "
            f"the largest ratio is {max(ratios):.3f}, the least {min(ratios):.3f} (deep roots lose "
            "rank to rounding, the formula has them full).",
            "Operations are products (2 m k n), entries written by all else, and n^3 of every "
            "factorization.",
        )
        return Findings("Table 1, measured", tables, tuple(found), CHARTS, notes)


PREDICTORS = {
    "task inputs, pair": "0.5 (Table 1)",
    "task inputs, shared": "up to 1: entries share draws",
    "random inputs, pair": "0.5 (Table 1)",
    "random inputs, shared": "0.5: no common part",
}
CHARTS = (
    Chart("forward", "Forward pass: FLOPs of products", "forward-lengths", "T", "products", "T",
          "model"),
    Chart("kernel", "Kernel estimate: operations", "kernel-lengths", "T", "operations", "T",
          "what"),
    Chart("draws", "Error of a kernel entry", "draws-lines", "draws", "error", "draws", "which",
          "stderr"),
    *(
        Chart(f"points-{kind}", f"Error of a predictor with coefficients 1, {kind.upper()}",
              f"points-{kind}", "P", "error", "P", "what", "stderr")
        for kind in errors.BOTH
    ),
    Chart("length", "Error of a kernel entry, 64 draws", "error-length", "T", "error", "T", "kind",
          "stderr"),
    Chart("alpha", "Largest coefficient", "alpha-points", "P", "max", "P", "which"),
)  # fmt: skip


def _law(rows: list[Row], x: str, y: str, what: str, **more: Any) -> Exponent:
    stderr = [r["stderr"] for r in rows] if "stderr" in rows[0] else None
    return power_law([r[x] for r in rows], [r[y] for r in rows], what, stderr=stderr, **more)


def _pick(rows: list[Row], **values: Any) -> list[Row]:
    return [r for r in rows if all(r[k] == v for k, v in values.items())]


def _forward(rows: Mapping[str, list[Row]]) -> list[Exponent]:
    found = []
    for name, model in costs.MODELS.items():
        held = _pick(rows["forward-counts"], model=name)
        every = _pick(held, axis="T")
        bound = [r for r in every if r["T"] >= ATTENTION_BOUND * model.width]
        found.append(
            _law(bound, "T", "products", f"forward, {name}: FLOPs in T, T >= {bound[0]['T']}",
                 theory="2 (Table 1)", bar=SQUARE)
        )  # fmt: skip
        found.append(_law(bound, "T", "bytes, plain", f"forward, {name}: plain memory in T",
                          theory="2"))  # fmt: skip
        theories = {"width": "1 (lemma: L H d T^2)", "depth": "1 (lemma)",
                    "heads": "0; the lemma's 1 is of full-width values"
                    if name == "practical" else "1 (lemma)"}  # fmt: skip
        found += [
            _law(_pick(held, axis=axis), "value", "products", f"forward, {name}: FLOPs in {axis}",
                 theory=theory)
            for axis, theory in theories.items()
        ]  # fmt: skip
        timed = _pick(rows["forward-times"], model=name)
        found.append(_law(timed, "T", "seconds", f"forward, {name}: time in T >= {timed[0]['T']}",
                          theory="2 where attention rules"))  # fmt: skip
    return found


def _kernel(rows: list[Row]) -> list[Exponent]:
    found = []
    for kind in ("NNGP", "NTK"):
        pairs = _pick(rows, what=f"{kind}, pairs")
        found += [
            _law(_pick(pairs, axis="T"), "T", "operations",
                 f"kernel, {kind}: operations in T, pairs, full rank", theory="3 (Table 1)",
                 bar=CUBE),
            _law(_pick(rows, what=f"{kind}, pairs, depth 2"), "T", "operations",
                 f"kernel, {kind}: operations in T, pairs, depth 2", theory="3 (Table 1)",
                 bar=CUBE),
            _law(_pick(rows, what=f"{kind}, pairs, rank 8"), "T", "operations",
                 f"kernel, {kind}: operations in T, block 1 of rank 8",
                 theory="2: few features, no token-by-token product"),
            _law(_pick(pairs, axis="P"), "P", "operations", f"kernel, {kind}: operations in P",
                 theory="1 (Table 1)"),
            _law(_pick(pairs, axis="draws"), "draws", "operations",
                 f"kernel, {kind}: operations in draws", theory="1 (Table 1)"),
            _law(_pick(pairs, axis="depth"), "depth", "operations",
                 f"kernel, {kind}: operations in depth, from 2", theory="1"),
            _law(_pick(pairs, axis="T"), "T", "seconds", f"kernel, {kind}: time in T",
                 theory="3 for large T"),
        ]  # fmt: skip
    return found


def _errors(rows: Mapping[str, list[Row]]) -> list[Exponent]:
    found = []
    for kind in errors.BOTH:
        for depth in (1, 2):
            held = _pick(rows["error-draws"], kind=kind, depth=depth)
            found.append(
                _law(held, "draws", "error", f"{kind}, depth {depth}: error of an entry in draws",
                     theory="-0.5 (Table 1)", bar=HALF)
            )  # fmt: skip
        for what, theory in PREDICTORS.items():
            held = _pick(rows["error-points"], kind=kind, what=what)
            found.append(_law(held, "P", "error", f"{kind}: predictor's error in P, {what}",
                              theory=theory))  # fmt: skip
        held = _pick(rows["error-length"], kind=kind)
        for some in (held, held[len(held) // 2 :]):
            if len(some) > 2:
                found.append(
                    _law(some, "T", "error", f"{kind}: error of an entry in T >= {some[0]['T']}",
                         theory="0 (independent of T)")
                )  # fmt: skip
    return found


def _coefficients(rows: list[Row]) -> list[Exponent]:
    found = []
    for kind in errors.BOTH:
        for stage in (1, 2):
            held = _pick(rows, kind=kind, stage=stage)
            by_points = [r for r in held if r["T"] == held[0]["T"]]
            by_length = [r for r in held if r["P"] == held[-1]["P"]]
            name = f"{kind}, stage {stage}"
            found += [
                _law(by_points, "P", "max", f"{name}: max |alpha| in P",
                     theory="0 (remark), at most 0.5"),
                _law(by_points, "P", "norm", f"{name}: ||alpha|| in P", theory="0.5 (remark)"),
                _law(by_length, "T", "max", f"{name}: max |alpha| in T", theory="0"),
            ]  # fmt: skip
    return found
