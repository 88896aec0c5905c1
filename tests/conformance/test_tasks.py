"""What every task promises, checked on every line of the table of tasks."""

import doctest
import json
import random
import sys

import numpy as np
import pytest
import torch

from algocapture.config import digest, from_json, registered, to_json
from algocapture.tasks import Task
from algocapture.types import Batch
from tests.cases import TASKS, TaskCase

SIZED = [pytest.param(case, size, id=f"{case}-{size}") for case in TASKS for size in case.sizes]
every_task = pytest.mark.parametrize("case", TASKS, ids=str)
every_size = pytest.mark.parametrize(("case", "size"), SIZED)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def same(a: Batch, b: Batch) -> bool:
    pairs = zip((a.inputs, a.targets, a.mask), (b.inputs, b.targets, b.mask), strict=True)
    return a.size == b.size and all(torch.equal(x, y) for x, y in pairs)


def missed(task: Task, batch: Batch) -> torch.Tensor:
    """A prediction that is wrong everywhere."""
    if task.spec.output == "class":
        return (batch.targets + 1) % task.spec.classes
    return batch.targets + task.margin


@every_size
def test_a_batch_is_what_the_spec_says(case: TaskCase, size: int) -> None:
    spec = case.task.spec
    batch = case.task.sample(size, case.n, generator())
    assert batch.size == size
    assert len(batch.inputs) == len(batch.targets) == case.n
    assert batch.mask.dtype == torch.bool
    assert batch.mask.any(-1).all() if batch.mask.ndim > 1 else batch.mask.any()
    if spec.inputs == "tokens":
        assert batch.inputs.ndim == 2
        assert batch.inputs.dtype == torch.int64
        assert batch.inputs.min() >= 0
        assert batch.inputs.max() < spec.vocab
    else:
        assert batch.inputs.shape == (case.n, size, spec.features)
        assert batch.inputs.is_floating_point()
        assert batch.inputs.isfinite().all()
    assert batch.targets.shape == (batch.inputs.shape[: 1 + (spec.readout == "every")])
    if spec.output == "class":
        assert batch.targets.dtype == torch.int64
        assert batch.targets.min() >= 0
        assert batch.targets.max() < spec.classes
    else:
        assert batch.targets.is_floating_point()


@every_size
def test_the_solver_agrees_with_the_labels(case: TaskCase, size: int) -> None:
    batch = case.task.sample(size, case.n, generator(1))
    solved = case.task.solve(batch.inputs)
    counts = batch.mask & case.task.scored(batch)
    assert solved.shape == batch.targets.shape
    assert solved.dtype == batch.targets.dtype
    assert torch.equal(solved[counts], batch.targets[counts])


@every_size
def test_errors_lie_between_right_and_wrong(case: TaskCase, size: int) -> None:
    task, batch = case.task, case.task.sample(size, case.n, generator(2))
    right, wrong = task.error(batch.targets, batch), task.error(missed(task, batch), batch)
    assert right.dtype == torch.float64
    assert torch.equal(right, torch.zeros(case.n, dtype=torch.float64))
    assert torch.equal(wrong, torch.ones(case.n, dtype=torch.float64))
    assert torch.equal(task.instance_error(missed(task, batch), batch), wrong)
    part = slice(3, case.n // 2)
    assert torch.equal(task.error(missed(task, batch)[part], batch[part]), wrong[part])


@every_size
def test_a_batch_is_a_function_of_the_seed(case: TaskCase, size: int) -> None:
    one, other = generator(3), generator(3)
    states = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    first, second = (case.task.sample(size, case.n, one) for _ in range(2))
    again = case.task.sample(size, case.n, other)
    assert same(first, again)
    assert not torch.equal(first.inputs, second.inputs)
    assert torch.equal(torch.get_rng_state(), states[0]), "torch's global generator was used"
    assert (np.random.get_state()[1] == states[1]).all()  # noqa: NPY002
    assert random.getstate() == states[2]
    assert same(case.task.sample(size, case.n, other), second), "the state after a call differs"


@every_task
def test_instances_are_independent(case: TaskCase) -> None:
    """Rows differ, and neighbouring rows are not correlated: 1 z-score for each task."""
    size, n = 60, 1000
    rows = case.task.sample(size, n, generator(7)).inputs.double().flatten(1)
    if case.varied:
        assert len(rows.unique(dim=0)) > 0.99 * n
    weights = torch.randn(rows.shape[1], generator=generator(8), dtype=torch.float64)
    image = rows @ weights
    image = (image - image.mean()) / image.std()
    assert abs(float((image[1:] * image[:-1]).mean()) * (n - 1) ** 0.5) < 4


@pytest.mark.parametrize("case", [c for c in TASKS if c.balanced], ids=str)
def test_half_of_the_labels_are_positive(case: TaskCase) -> None:
    draws = generator(4)
    for size in case.sizes:
        assert case.task.sample(size, case.n, draws).targets.sum() == case.n // 2
    odd = [int(case.task.sample(case.sizes[-1], 3, draws).targets.sum()) for _ in range(32)]
    assert set(odd) == {1, 2}, "the odd instance takes either label"


@pytest.mark.parametrize("case", [c for c in TASKS if c.balanced], ids=str)
def test_the_classes_come_in_random_order(case: TaskCase) -> None:
    """Of two instances either may be the positive one: 1 z-score for each task."""
    draws, n = generator(9), 300
    first = [int(case.task.sample(case.sizes[-1], 2, draws).targets[0]) for _ in range(n)]
    assert abs(sum(first) - n / 2) / (n / 4) ** 0.5 < 4


@every_task
def test_a_task_is_its_configuration(case: TaskCase) -> None:
    data = json.loads(json.dumps(to_json(case.task)))
    assert from_json(data) == case.task
    assert digest(data) == digest(case.task)
    assert case.task.exponents is not None
    assert case.task.spec.smallest == case.sizes[0], "the table's first size is the smallest"


def test_the_table_of_tasks_is_whole_and_ours() -> None:
    """Every registered task has a line in the table, and no other test left one behind."""
    assert set(registered(Task).values()) == {type(case.task) for case in TASKS}


@every_task
def test_the_docstring_shows_an_instance_that_works(case: TaskCase) -> None:
    found = doctest.testmod(sys.modules[type(case.task).__module__])
    assert found.attempted > 0
    assert found.failed == 0


@every_task
def test_baselines_are_errors(case: TaskCase) -> None:
    found = case.task.baselines(case.sizes[-1], case.n, generator(5))
    assert "constant" in found
    assert len(found) > 1
    assert all(type(error) is float and 0 <= error <= 1 for error in found.values())
    assert found == case.task.baselines(case.sizes[-1], case.n, generator(5))


class Elsewhere(torch.Generator):
    """A generator of a device on which no instances are made."""

    device = torch.device("mps")


BAD = [
    ("size", True, "size of .* must be an integer >= .*, got True"),
    ("size", 8.0, "size of .* must be an integer >= .*, got 8.0"),
    ("n", 0, "n, .*, must be an integer >= 1, got 0"),
    ("n", -4, "n, .*, must be an integer >= 1, got -4"),
    ("n", 2.0, "n, .*, must be an integer >= 1, got 2.0"),
    ("n", True, "n, .*, must be an integer >= 1, got True"),
    ("generator", None, "generator must be a torch.Generator, got None"),
    ("generator", 7, "generator must be a torch.Generator, got 7"),
    ("generator", np.random.default_rng(0), "generator must be a torch.Generator, got Generator"),
    ("generator", Elsewhere(), "generator lives on 'mps': instances are made on 'cpu' or 'cuda'"),
    ("size", 2**31, "size of .* must be at most 2147483647, got 2147483648"),
    ("n", 2**70, "n, .*, must be at most 2147483647, got 1180591620717411303424"),
]


@every_task
def test_bad_arguments_are_named(case: TaskCase) -> None:
    good = {"size": case.sizes[-1], "n": 2, "generator": generator()}
    small = case.task.spec.smallest - 1
    for name, value, message in [*BAD, ("size", small, f"got {small}")]:
        with pytest.raises(ValueError, match=message):
            case.task.sample(**(good | {name: value}))


@every_task
def test_sizes_and_numbers_may_be_numpys(case: TaskCase) -> None:
    size, n = case.sizes[-1], case.n
    batch = case.task.sample(np.int64(size), np.uint16(n), generator())
    assert same(batch, case.task.sample(size, n, generator()))
    assert type(batch.size) is int


@every_task
def test_an_answer_that_is_no_tensor_is_named(case: TaskCase) -> None:
    batch = case.task.sample(case.sizes[-1], 2, generator())
    with pytest.raises(ValueError, match=r"predicted must be a torch.Tensor, got a list"):
        case.task.error(batch.targets.tolist(), batch)
    with pytest.raises(ValueError, match="give class ids or values, not logits"):
        case.task.error(batch.targets[..., None].expand(*batch.targets.shape, 7), batch)


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("case", [c for c in TASKS if c.on_gpu], ids=str)
def test_sampling_and_solving_stay_on_the_gpu(case: TaskCase) -> None:
    draws = torch.Generator("cuda").manual_seed(6)
    for size in case.sizes:
        case.task.sample(size, case.n, draws)  # the first call may load kernels
        torch.cuda.set_sync_debug_mode("error")  # a copy to the host raises
        try:
            batch = case.task.sample(size, case.n, draws)
            solved = case.task.solve(batch.inputs)
            error = case.task.error(solved, batch)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        made = (batch.inputs, batch.targets, batch.mask, solved)
        assert {x.device.type for x in made} == {"cuda"}
        assert error.sum() == 0
        assert torch.equal(case.task.solve(batch.inputs.cpu()), solved.cpu())
