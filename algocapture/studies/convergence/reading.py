"""What the rows of the convergence study say: exponents with intervals, tables, figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from algocapture.stats.findings import Chart, Findings, Row
from algocapture.stats.power import Exponent, power_law

Rows = Mapping[str, Sequence[Row]]
FIRST_ORDER = 0.1  # the expansion is said to hold where the evidence moves by less
RESOLVED = 3.0  # a deviation below so many standard errors is noise, and no point of a fit


def read(rows: Rows) -> Findings:
    """A function of the rows alone."""
    kernels = _of(rows, "kernel-")
    posteriors = _of(rows, "posterior-") + _of(rows, "langevin-")
    samples, flows = _of(rows, "samples-"), _of(rows, "flow-fcn") + _of(rows, "flow-transformer")
    flow_samples, rich = _of(rows, "flow-samples-"), _of(rows, "rich-")
    tables = {
        "kernels": kernels,
        "posteriors": [_same_columns(row) for row in posteriors],
        "samples": [_same_columns(row) for row in samples],
        "flows": flows,
        "flow-samples": flow_samples,
        "rich": rich,
    }
    tables |= _long(tables)
    return Findings(
        "Finite width against the limit",
        {name: list(held) for name, held in tables.items() if held},
        tuple(_exponents(tables)),
        tuple(chart for chart in CHARTS if tables.get(chart.table)),
        (*_first_order_holds(posteriors), *_hidden(tables)),
    )


def _of(rows: Rows, prefix: str) -> list[Row]:
    return [row for name, held in rows.items() if name.startswith(prefix) for row in held]


def _same_columns(row: Row) -> Row:
    """Weighted draws have an effective number, Langevin dynamics an acceptance and a drift."""
    return {
        "network": row["network"], "method": row["method"], "width": row["width"], "P": row["P"],
        "deviation": row["deviation"], "deviation error": row["deviation error"],
        "f_U": row["f_U"], "f_U error": row["f_U error"],
        "after f_U": row["after f_U"], "after f_U error": row["after f_U error"],
        "after both": row["after both"], "after both error": row["after both error"],
        "evidence": row["evidence"], "effective": row.get("effective"),
        "accepted": row.get("accepted"), "drift": row.get("drift"),
    }  # fmt: skip


def _fit(
    rows: Sequence[Row], x: str, y: str, what: str, theory: str,
    bar: tuple[float, float] | None = None,
) -> list[Exponent]:  # fmt: skip
    """Of the resolved points; nothing where fewer than three are."""
    held = [r for r in rows if r[y] is not None and r[y] > RESOLVED * r[f"{y} error"]]
    if len({row[x] for row in held}) < 3:
        return []
    values = ([float(row[column]) for row in held] for column in (x, y, f"{y} error"))
    at, deviation, error = values
    return [power_law(at, deviation, what, stderr=error, theory=theory, bar=bar)]


def _exponents(tables: Mapping[str, Sequence[Row]]) -> list[Exponent]:
    found: list[Exponent] = []
    for (network, kind), rows in _groups(tables["kernels"], "network", "kind"):
        what = f"{kind} kernel of {network} over width"
        judged = network.startswith("fcn3") and kind == "nngp"
        bar = ((-1.15, -0.85), (-0.65, -0.35)) if judged else (None, None)
        found += _fit(rows, "width", "mean", f"{what}, mean", "-1", bar[0])
        found += _fit(rows, "width", "single", f"{what}, single network", "-0.5", bar[1])
    for (network, method), rows in _groups(tables["posteriors"], "network", "method"):
        what = f"posterior mean of {network} over width, {method}"
        found += _fit(rows, "width", "deviation", what, "-1", (-10.0, 0.0))
        found += _fit(rows, "width", "after f_U", f"{what}, f_U taken away", "-2 or below -1")
    for (network,), rows in _groups(tables["samples"], "network"):
        for y in ("deviation", "f_U"):
            what = f"{y} of {network} over P, Langevin"
            found += _fit(rows, "P", y, what, "at most 5 (paper), 3.5")
    for (network,), rows in _groups(tables["flows"], "network"):
        what = f"gradient flow of {network} over width"
        found += _fit(rows, "width", "mean", f"{what}, mean", "-1", (-10.0, 0.0))
        found += _fit(rows, "width", "single", f"{what}, single network", "-0.5", (-10.0, 0.0))
    for (network,), rows in _groups(tables["flow-samples"], "network"):
        for y in ("mean", "single"):
            found += _fit(rows, "P", y, f"gradient flow of {network} over P, {y}", "gamma")
    for (network, kind), rows in _groups(tables["rich"], "network", "parameterisation"):
        what = f"{kind} {network} over width"
        found += _fit(rows, "width", "step", f"{what}, mean prediction", "-1")
        found += _fit(rows, "width", "spread", f"{what}, spread of networks", "-0.5")
        change = "-0.5" if kind == "ntk" else "0"
        found += _fit(rows, "width", "NTK change", f"{what}, change of the NTK", change)
    return found


def _groups(rows: Sequence[Row], *columns: str) -> list[tuple[tuple[str, ...], list[Row]]]:
    keys = dict.fromkeys(tuple(row[column] for column in columns) for row in rows)
    return [(k, [r for r in rows if tuple(r[c] for c in columns) == k]) for k in keys]


def _long(tables: Mapping[str, Sequence[Row]]) -> dict[str, list[Row]]:
    """The same figures one a row, as a chart with several lines needs them."""
    three = ("deviation", "after f_U", "after both")
    flow = tables["flows"]
    rich = [{**row, "network": f"{row['network']}, {row['parameterisation']}"}
            for row in tables["rich"]]  # fmt: skip
    kernels = [{**row, "network": f"{row['network']} {row['kind']}"} for row in tables["kernels"]]
    out = {
        "kernel-lines": _lines(kernels, ("mean", "single"), "width"),
        "sample-lines": _lines(tables["samples"], ("deviation", "f_U", "after f_U"), "P"),
        "flow-lines": _lines(flow, ("mean", "single"), "width"),
        "flow-sample-lines": _lines(tables["flow-samples"], ("mean", "single"), "P"),
        "rich-lines": _lines(rich, ("NTK change",), "width"),
        "rich-spread-lines": _lines(rich, ("spread",), "width"),
    }
    for (network, method), rows in _groups(tables["posteriors"], "network", "method"):
        out[f"lines-{network}-{method.split()[0].lower()}"] = _lines(rows, three, "width")
    return out


def _lines(rows: Sequence[Row], columns: Sequence[str], x: str) -> list[Row]:
    several = len({row["network"] for row in rows}) > 1
    return [
        {
            "line": ", ".join([row["network"]] * several + [column] * (len(columns) > 1)),
            x: row[x],
            "value": row[column],
            "error": row[f"{column} error"],
        }
        for column in columns
        for row in rows
        if row[column] is not None and row[column] > 2.2 * row[f"{column} error"]  # bars of 2
    ]


def _first_order_holds(rows: Sequence[Row]) -> list[str]:
    """How much of the deviation f_U explains at the least width where its expansion holds, or at
    the widest if it holds nowhere. The bar is for fully-connected networks."""
    notes = []
    for (network, method), held in _groups(rows, "network", "method"):
        found = [r for r in held if r["deviation"] is not None]
        holds = [r for r in found if r["evidence"] < FIRST_ORDER]
        if not found:
            continue
        row = holds[0] if holds else found[-1]
        where = "first order from here on" if holds else "the expansion holds at no width measured"
        left = ", ".join(_left(row, name) for name in ("after f_U", "after both"))
        bar = ""
        if holds and network != "transformer":
            met = (row["after f_U"] or 0.0) <= row["deviation"] / 2
            bar = f"; bar of a half: {'met' if met else 'NOT met'}"
        notes.append(
            f"{network}, {method}, width {row['width']} ({where}; evidence moves by "
            f"{row['evidence']:.2f}): deviation {row['deviation']:.4f}, {left}{bar}."
        )
    return notes


def _left(row: Row, name: str) -> str:
    left = row[name] or 0.0
    return f"{name} {left:.4f} +- {row[f'{name} error']:.4f} ({left / row['deviation']:.0%} left)"


def _hidden(tables: Mapping[str, Sequence[Row]]) -> list[str]:
    rows = [row for name in ("posteriors", "samples") for row in tables[name]]
    drifting = [row for row in rows if (row["drift"] or 0.0) > 3]
    return [
        f"{row['network']}, Langevin at width {row['width']}, P = {row['P']}: the chains still "
        f"drift (z = {row['drift']:.1f}); more steps are needed."
        for row in drifting
    ]


def _chart(name: str, title: str, table: str, x: str) -> Chart:
    return Chart(name, title, table, x, "value", x, series="line", error="error")


_POSTERIORS = (
    ("fcn2-erf", "weighted", "fcn2-erf, exact posterior: off f_K by"),
    ("fcn2-erf", "langevin", "fcn2-erf, Langevin: off f_K by"),
    ("fcn2-relu", "weighted", "fcn2-relu, exact posterior: off f_K by"),
    ("fcn2-relu", "langevin", "fcn2-relu, Langevin: off f_K by"),
    ("fcn3-gelu", "weighted", "fcn3-gelu, exact posterior: off f_K by"),
    ("transformer", "weighted", "transformer, exact posterior: off f_K by"),
    ("transformer", "langevin", "transformer, Langevin: off f_K by"),
)
CHARTS = (
    _chart("kernels", "Kernels: relative deviation", "kernel-lines", "width"),
    *(
        _chart(f"{how}-{name}", title, f"lines-{name}-{how}", "width")
        for name, how, title in _POSTERIORS
    ),
    _chart("samples", "Off the NNGP predictor by, over P", "sample-lines", "P"),
    _chart("flows", "Gradient flow: off the NTK predictor by", "flow-lines", "width"),
    _chart("flow-samples", "Gradient flow: deviation over P", "flow-sample-lines", "P"),
    _chart("rich-change", "Relative change of the NTK by training", "rich-lines", "width"),
    _chart("rich-spread", "Spread of predictions over networks", "rich-spread-lines", "width"),
)
