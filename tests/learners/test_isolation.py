"""A member's own state of torch's global generator."""

import pytest
import torch

from algocapture.learners.isolation import GlobalGenerator
from algocapture.rng import Seed

CPU = torch.device("cpu")


def draw(generator, **options):
    with generator.use(**options):
        return torch.rand(4).tolist()


def test_draws_go_on_from_use_to_use_and_are_the_seeds():
    one, same, other = (GlobalGenerator(Seed(root), CPU) for root in (0, 0, 1))
    first, second = draw(one), draw(one)
    assert first != second
    assert [draw(same), draw(same)] == [first, second]
    assert draw(other) != first


def test_draws_without_keeping_leave_no_trace():
    one, same = (GlobalGenerator(Seed(0), CPU) for _ in range(2))
    assert draw(one, keep=False) == draw(one, keep=False) == draw(one) == draw(same)


def test_the_outer_state_comes_back_also_after_an_error():
    outer = torch.get_rng_state()
    generator = GlobalGenerator(Seed(0), CPU)
    draw(generator)
    with pytest.raises(KeyError), generator.use():
        _ = {}[torch.rand(1)]
    assert torch.equal(torch.get_rng_state(), outer)


def test_a_stored_state_goes_on():
    one, fresh = GlobalGenerator(Seed(0), CPU), GlobalGenerator(Seed(1), CPU)
    draw(one)
    state = one.state()
    expected = draw(one)
    fresh.load(state | {"cuda": state["cpu"]})  # a state of a GPU run keeps what fits here
    assert draw(fresh) == expected
