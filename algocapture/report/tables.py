"""What the page says of a run beside its figures, as plain values for the template."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Sequence
from typing import Any

from algocapture.ledger import ACCOUNTS
from algocapture.report.rows import names, plain
from algocapture.report.style import short
from algocapture.report.summary import Summary
from algocapture.report.together import by_delta, together
from algocapture.stats import Verdict
from algocapture.stats.verdict import power_of_t

MOST_STAGES = 300  # rows of the tables of stages, on one page

LABELS = {
    "captured": "Captured",
    "not captured": "Not captured",
    "undecided": "Undecided",
    "none": "No verdict",
}


def run(s: Summary, name: str, most_stages: int = MOST_STAGES) -> dict[str, Any]:
    """Everything that the template shows of one run."""
    verdict, reason = s.judged
    outcome = verdict.outcome if verdict else "none"
    return {
        "name": name,
        "path": str(s.path),
        "task": _type(s.identity.get("task")),
        "model": _model(s.identity.get("learner")),
        "outcome": outcome,
        "label": LABELS[outcome],
        "sentence": verdict.sentence(s.delta) if verdict else f"There is no verdict: {reason}.",
        "complete": s.complete,
        "notes": list(verdict.caveats) if verdict else [],
        "advice": verdict.advice if verdict else "",
        "unsaid": f"{verdict.unsaid[0].upper()}{verdict.unsaid[1:]}." if verdict else "",
        "facts": facts(s, verdict),
        "laws": _laws(verdict),
        "delta": s.delta,
        "baselines": s.facts().baselines,
        "ledger": ledger(s),
        "stages": stages(s)[:most_stages],
        "more_stages": max(sum(map(len, s.stages.values())) - most_stages, 0),
        "configuration": flat(s.identity) | flat(s.extension),
        "sessions": [flat(_without_units(held)) for held in s.meta.get("sessions", [])],
        "commands": commands(s),
        "python": python(s),
        "recipe": s.recipe,
        "summary": _line(s, verdict),
    }


def facts(s: Summary, verdict: Verdict | None) -> list[tuple[str, str, str]]:
    """(what, value, remark): the figures that one looks for first."""
    curves = s.curves()
    first = math.exp(sum(math.log(c.spent[0]) for c in curves) / len(curves))
    found = [("δ", f"{s.delta:g}", "the error to be reached at every size")]
    if verdict is not None:
        low, high = verdict.interval
        if math.isfinite(verdict.exponent):
            interval = f"{100 * verdict.confidence:g}% interval {signed(low)} to {signed(high)}"
            found.insert(0, ("Exponent κ", signed(verdict.exponent), interval))
        sizes = f"{verdict.sizes[0]:g} to {verdict.sizes[1]:g}"
        found.append(("Sizes T", sizes, f"{verdict.decades:.2f} decades"))
        spread = f"{verdict.seed_sd:.2f}" if verdict.seed_sd >= 0.005 else "below 0.005"
        found.append(("Seeds", str(verdict.seeds), f"sd of κ over seeds {spread}"))
    else:
        sizes = f"{curves[0].sizes[0]:g} to {max(c.sizes[-1] for c in curves):g}"
        found += [("Sizes T", sizes, "tried"), ("Seeds", str(len(curves)), "with a decided stage")]
    found.append(("P₀", short(first), "training samples to pass T₀, geometric mean"))
    if verdict is not None:
        guide = f"guide C log(T/T₀), {short(verdict.guide.cost)} samples"
        found.append(("C / P₀", f"{verdict.guide.relative:.2g}", guide))
        if verdict.floor.reached:
            floor = f"{verdict.floor.share:.0%} of the stages cost at most one look"
            found.append(("C₀ at most", short(verdict.floor.bound), floor))
        if (late := verdict.late_early) is not None:
            low, high = late.interval
            ratio = f"cost per log T, last third over first; {low:.2f} to {high:.2f}"
            found.append(("Late / early", f"{late.ratio:.2f}", ratio))
        forward = power_of_t(verdict.bounds.forward)
        bound = f"on the runtime of a kernel with this κ; of a forward pass {forward}"
        found.append(("Paper's bound", power_of_t(verdict.bounds.kernel), bound))
    return found


def _laws(verdict: Verdict | None) -> dict[str, float]:
    return dict(sorted(verdict.laws.items(), key=lambda kv: -kv[1])) if verdict else {}


def _line(s: Summary, verdict: Verdict | None) -> dict[str, str]:
    """One line in the comparison of several runs."""
    curves = s.curves()
    first = math.exp(sum(math.log(c.spent[0]) for c in curves) / len(curves))
    line = {"δ": f"{s.delta:g}", "κ": "", "interval": "", "sizes": "", "P₀": short(first), "C₀": ""}
    if verdict is not None:
        low, high = verdict.interval
        line |= {
            "κ": signed(verdict.exponent),
            "interval": f"{signed(low)} to {signed(high)}",
            "sizes": f"{verdict.sizes[0]:g} to {verdict.sizes[1]:g}",
            "C₀": short(verdict.guide.cost),
        }
    return line | {"seeds": str(len(curves))}


def ledger(s: Summary) -> list[dict[str, Any]]:
    """Samples and FLOPs by account, summed over seeds: each stage's record holds all before it."""
    total = {account: {"samples": 0, "flops": 0} for account in ACCOUNTS}
    for held in s.stages.values():
        for row in held[-1].get("ledger", []) if held else []:
            total[row["account"]]["samples"] += row["samples"]
            total[row["account"]]["flops"] += row["flops"]
    names = {"train": "training", "evaluate": "evaluation", "baseline": "shortcut baselines"}
    return [{"account": names[account], **of} for account, of in total.items()]


def stages(s: Summary) -> list[dict[str, Any]]:
    """The decided stages at their last looks."""
    found = []
    for seed, held in s.stages.items():
        for stage in held:
            looks = stage.get("looks") or [{}]
            last = {k: looks[-1].get(k) for k in ("error", "low", "high")}
            counted = {"seed": seed, "looks": len(stage.get("looks", [])), **last}
            keys = ("size", "outcome", "limit", "spent", "spent_low")
            found.append(counted | {k: stage.get(k) for k in keys})
    return found


def flat(value: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested configuration as dotted names; a type stands at the name of what it describes."""
    found: dict[str, str] = {}
    for key, held in value.items():
        name = f"{prefix}{key}"
        if key == "type" and prefix:
            found = {prefix[:-1]: str(held)} | found
        elif isinstance(held, dict):
            found |= flat(held, f"{name}.")
        elif key != "type":
            found[name] = held if isinstance(held, str) else json.dumps(held)
    return found


def commands(s: Summary) -> list[tuple[str, str]]:
    """What to type to check, judge, continue or draw this run again."""
    folder = shlex.quote(plain(s.path, 4096))
    own = " --recipe YOUR_FILE.py" if s.recipe else ""
    more = s.extension.get("seeds", len(s.stages)) + 4
    return [
        (f"algocapture verify {folder}", "check every file's hash, rebuild the result"),
        (f"algocapture verdict {folder} --json", "the verdict and the curves, for programs"),
        (f"algocapture report {folder} --figures figures", "this page; figures as files with data"),
        (f"algocapture resume {folder}{own} --set seeds={more}", "extend the run by more seeds"),
    ]


def python(s: Summary) -> str:
    """A script that runs the same experiment again: the page alone is enough."""
    held = json.dumps(s.identity | s.extension)
    return (
        "import json\n"
        "from algocapture.config import from_json\n"
        "from algocapture.experiment import Experiment\n\n"
        f"experiment = from_json(json.loads({held!r}))\n"
        'experiment.run("runs/again")'
    )


def differences(summaries: Sequence[Summary]) -> list[dict[str, Any]]:
    """Where the configurations of several runs differ: the field, and its value in each run."""
    whole = [flat(s.identity) | flat(s.extension) for s in summaries]
    fields = list(dict.fromkeys(name for held in whole for name in held))
    return [
        {"field": name, "values": [held.get(name, "\u2013") for held in whole]}
        for name in fields
        if len({held.get(name) for held in whole}) > 1
    ]


def deltas(summaries: Sequence[Summary]) -> list[str]:
    """A sentence for each group of runs that differ in delta alone: the definition asks for every
    delta."""
    judged = [s for s in summaries if s.judged[0] is not None]
    named = dict(zip((s.path for s in summaries), names(summaries), strict=True))
    return [
        f"{', '.join(named[s.path] for s in group)}: {together(group).sentence}"
        for group in by_delta(judged)
    ]


def power(number: float) -> str:
    """1.23e15 as 1.23 x 10^15, in letters that need no markup."""
    if number < 1e4:
        return f"{number:,.0f}"
    digits, exponent = f"{number:.2e}".split("e")
    raised = str(int(exponent)).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digits} × 10{raised}"


def signed(value: float) -> str:
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "\u2212")


def _type(held: Any) -> str:
    return plain(held.get("type", "task")).removeprefix("user:") if isinstance(held, dict) else ""


def _model(held: Any) -> str:
    if not isinstance(held, dict):
        return ""
    return _type(held.get("model") or held)


def _without_units(session: dict[str, Any]) -> dict[str, Any]:
    return {key: held for key, held in session.items() if key != "units"}
