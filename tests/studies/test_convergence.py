"""The study of finite width: its parts run, and what it reads off rows is what was put in."""

from __future__ import annotations

import math

import pytest
import torch

from algocapture.rng import Seed
from algocapture.studies.convergence import Convergence, flows
from algocapture.studies.convergence.families import FAMILIES, data_set
from algocapture.studies.convergence.reading import read
from algocapture.studies.convergence.sizes import Sizes
from algocapture.studies.convergence.study import PARTS


class Small(Sizes):
    """Two or three widths and a few draws: seconds."""

    def kernel_widths(self, family):
        return (2, 4, 8)

    def widths(self, family):
        return (2, 4, 8)

    def trained_widths(self, family):
        return (2, 4, 8)

    def flow_widths(self, family):
        return (4, 8, 16)

    def doubling(self, family):
        return (4, 8)


SMALL = Small(scale=1e-3, samples=2, counts=(1, 2, 3), samples_width=4, burn=40, steps=40)


MEASURED = (
    "kernel-fcn3-gelu-ntk",
    "posterior-transformer",
    "langevin-fcn2-erf",
    "samples-fcn2-erf",
    "flow-fcn2-relu",
    "rich-fcn2-relu",
)


@pytest.mark.parametrize("name", MEASURED)
def test_a_part_is_rows_of_numbers_and_repeats(name):
    one, two = (PARTS[name](SMALL, Seed(0).child(name)) for _ in range(2))
    assert one == two
    assert len({tuple(row) for row in one}) == 1
    for row in one:
        for value in row.values():
            assert value is None or isinstance(value, str) or math.isfinite(value)
    findings = read({name: one})
    assert findings.tables


def made(widths, coefficient, power, **columns):
    return [
        {"network": "fcn3-gelu", "kind": "nngp", "width": n}
        | {"mean": coefficient * n**power, "mean error": 0.01 * n**power}
        | {"single": n**-0.5, "single error": 0.01 * n**-0.5}
        | columns
        for n in widths
    ]


def test_exponents_are_those_put_in():
    rows = made((4, 8, 16, 32), 0.3, -1.0)
    rows[1]["mean"] = None  # hidden by noise: no point of a fit
    found = {e.what: e for e in read({"kernel-fcn3-gelu-nngp": rows}).exponents}
    mean = found["nngp kernel of fcn3-gelu over width, mean"]
    assert mean.value == pytest.approx(-1)
    assert mean.points == 3
    assert mean.met
    assert found["nngp kernel of fcn3-gelu over width, single network"].met
    steep = {
        e.what: e for e in read({"kernel-fcn3-gelu-nngp": made((4, 8, 16), 1, -0.5)}).exponents
    }
    assert steep["nngp kernel of fcn3-gelu over width, mean"].met is False


def posterior_row(width, left, evidence):
    names = ("deviation", "f_U", "after f_U", "after both")
    values = dict(zip(names, (1 / width, 1 / width, left, left), strict=True))
    return (
        {
            "network": "fcn2-erf",
            "method": "weighted draws",
            "width": width,
            "P": 4,
            "effective": 9.0,
        }
        | values
        | {f"{name} error": 1e-3 for name in names}
        | {"evidence": evidence}
    )


def test_the_bar_is_judged_where_the_expansion_holds():
    """Not at width 2, where everything is explained, but at 8, where a half is left or not."""
    for left, verdict in ((0.04, ": met."), (0.08, ": NOT met.")):
        rows = [
            posterior_row(2, 0.0, 0.6),
            posterior_row(8, left, 0.05),
            posterior_row(16, 0, 0.01),
        ]
        (note,) = read({"posterior-fcn2-erf": rows}).notes
        assert "width 8 (first order from here on" in note
        assert note.endswith(verdict)
    (note,) = read({"posterior-fcn2-erf": [posterior_row(2, 0.3, 0.6)]}).notes
    assert "holds at no width" in note
    assert "bar" not in note


def test_families_converge_to_their_limits():
    """Single networks come nearer their limit from width 2 to 32."""
    for family in FAMILIES.values():
        held = data_set(family, "nngp", 2, 20_000, Seed(3), "cpu", tests=1)
        off = []
        for width in (2, 32):
            population = family.build(width, "ntk")
            kernels = population.kernels(
                population.draw(400, torch.Generator().manual_seed(1), held.x), held.x
            )
            off.append(float((kernels - held.kernel).norm() / held.kernel.norm()))
        assert off[1] < off[0] / 2, family.name


def test_the_flows_limit_is_the_kernel_predictor():
    """Against KernelPredictor.predict_at, another implementation."""
    from algocapture.kernels import InfiniteFullyConnected
    from algocapture.learners import KernelPredictor

    held = data_set(FAMILIES["fcn2-relu"], "ntk", 3, 1, Seed(3), "cpu")
    x = held.x.flatten(1).numpy()
    kernel = InfiniteFullyConnected(2, "relu", 2.0, 0.1)
    predictor = KernelPredictor(kernel, "ntk").fit(x[:3], held.targets.numpy())
    expected = predictor.predict_at(x[3:], flows._time(held)[0])
    torch.testing.assert_close(flows.limit_prediction(held), torch.as_tensor(expected))


def test_fields_are_checked():
    with pytest.raises(ValueError, match=r"scale must lie in \(0, 1000\], got 0"):
        Convergence(scale=0)
    with pytest.raises(ValueError, match="three or more different counts"):
        Convergence(counts=(1, 2))
