"""What every model promises, checked on every line of the table of models."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from algocapture.config import from_json, to_json
from tests.cases import MODELS, ModelCase

every_model = pytest.mark.parametrize("case", MODELS, ids=str)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def inputs(case: ModelCase, n: int = 3, length: int = 9) -> torch.Tensor:
    if case.spec.inputs == "tokens":
        return torch.randint(case.spec.vocab, (n, length), generator=generator(2))
    return torch.randn(n, length, case.spec.features, generator=generator(2))


@every_model
def test_outputs_have_the_promised_shape_at_any_length(case: ModelCase) -> None:
    module = case.model.build(case.spec, generator())
    assert module(inputs(case)).shape == case.shape
    for length in (1, 2, 33):
        out = module(inputs(case, 2, length))
        assert out.isfinite().all()
        assert out.ndim == len(case.shape)


@every_model
@pytest.mark.parametrize("length", [1, 2, 17])
def test_flops_equal_the_counted_matrix_products(case: ModelCase, length: int) -> None:
    module = case.model.build(case.spec, generator())
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        module(inputs(case, 1, length))
    assert case.model.flops(case.spec, length) == counter.get_total_flops()


@every_model
def test_parameter_count(case: ModelCase) -> None:
    module = case.model.build(case.spec, generator())
    assert case.model.parameter_count(case.spec) == sum(p.numel() for p in module.parameters())


@every_model
def test_construction_draws_from_the_given_generator_only(case: ModelCase) -> None:
    before = torch.get_rng_state()
    first, again, other = (case.model.build(case.spec, generator(seed)) for seed in (0, 0, 1))
    assert torch.equal(before, torch.get_rng_state())
    differ = 0
    for a, b, c in zip(first.parameters(), again.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
        differ += not torch.equal(a, c)
        assert a.ndim < 2 or not torch.equal(a, c), "a matrix that the generator did not draw"
    assert differ


@every_model
def test_every_parameter_is_trained(case: ModelCase) -> None:
    module = case.model.build(case.spec, generator())
    module(inputs(case)).square().sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@every_model
def test_instances_do_not_meet(case: ModelCase) -> None:
    module = case.model.build(case.spec, generator()).double()
    x = inputs(case)
    alone = torch.cat([module(row) for row in x.split(1)])
    torch.testing.assert_close(alone, module(x), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("case", [c for c in MODELS if c.sees == "past"], ids=str)
def test_the_future_does_not_leak(case: ModelCase) -> None:
    module = case.model.build(case.spec, generator()).double()
    x = inputs(case)
    changed = x.clone()
    changed[:, 5] = x[:, 5] + 1 if case.spec.inputs == "vectors" else (x[:, 5] + 1) % 11
    a, b = (module(z).flatten(2 if len(case.shape) > 2 else 1) for z in (x, changed))
    assert torch.equal(a[:, :5], b[:, :5])
    assert ((a - b)[:, 5:].abs().reshape(3, 4, -1).amax(-1) > 1e-9).all()


@every_model
def test_a_model_is_its_configuration(case: ModelCase) -> None:
    assert from_json(to_json(case.model)) == case.model
