"""The engine on a learner whose error is known: every figure it reports can be computed by hand."""

from __future__ import annotations

import itertools
import math
import threading

import torch

from algocapture.learners import Step
from algocapture.protocol import Decided, Engine, Incremental, Limits, Looked, WholeInterval
from algocapture.protocol.ahead import Ahead
from algocapture.protocol.pac import PacReplication
from algocapture.protocol.records import is_final
from algocapture.rng import Seed
from algocapture.stats.sequential import SequentialTest
from algocapture.types import torch_generator
from tests.protocol.fakes import Coin, KnownErrorConfig

CPU = torch.device("cpu")
TEST = SequentialTest(chunk=128, maximum=2048)
PROTOCOL = Incremental(t0=4, delta=0.1, growth=1.5, batch=20, test=TEST, probes=(2.0,))


def engine(protocol=PROTOCOL, limits=None, seeds=1, power=2.0, root=0) -> Engine:
    limits = limits or Limits(largest=20, samples=100_000)
    streams = [Seed(root).child("seed", s) for s in range(seeds)]
    return Engine(Coin(), KnownErrorConfig(power), protocol, limits, streams, CPU)


def finish(e: Engine) -> list[dict]:
    records = []
    while events := e.advance():
        records += [
            event.record | {"member": event.member}
            for event in events
            if isinstance(event, Decided)
        ]
    return records


def test_the_curve_is_where_the_known_error_says():
    """The error is T^2/(1 + P): a test that passes when it is below 0.1 passes near P = 10 T^2,
    not before it and not at twice it."""
    for record in finish(engine()):
        crossing = 10 * record["size"] ** 2
        assert record["outcome"] == "passed"
        assert record["spent"] > crossing
        assert record["spent_low"] < 2 * crossing


def test_p_is_an_interval_of_at_most_a_tenth_or_a_batch():
    before = 0
    for record in finish(engine()):
        assert record["spent"] == before + record["samples"]
        assert record["spent_low"] == before + record["samples_low"]
        before = record["spent"]
        width = record["samples"] - record["samples_low"]
        assert width <= max(PROTOCOL.batch, 0.1 * record["samples"] + PROTOCOL.batch)
        failing = [look for look in record["looks"] if look["decision"] == "fail"]
        assert record["samples_low"] == (failing[-1]["samples"] if failing else 0)
        assert record["looks"][-1]["samples"] == record["samples"]


def test_the_first_look_comes_before_training_so_a_stage_may_cost_nothing():
    records = finish(engine(power=0.0))
    assert records[0]["looks"][0]["samples"] == 0
    assert records[0]["samples"] > 0
    assert [r["samples"] for r in records[1:]] == [0] * (len(records) - 1)
    assert [r["spent"] for r in records] == [records[0]["spent"]] * len(records)


def test_the_ledger_counts_every_instance_handed_to_the_learner():
    e = engine(seeds=2)
    handed = [0, 0]
    step = e.learner.step

    def counting(batches):
        for m, batch in enumerate(batches):
            handed[m] += 0 if batch is None else len(batch)
        return step(batches)

    e.learner.step = counting
    records = finish(e)
    for m, member in enumerate(e.members):
        last = [r for r in records if r["member"] == m][-1]
        assert member.ledger.spent(account="train").samples == handed[m] == last["spent"]
        looks = sum(look["n"] for r in records if r["member"] == m for look in r["looks"])
        probes = sum(p["n"] for r in records if r["member"] == m for p in r["probes"])
        assert member.ledger.spent(account="evaluate").samples == looks + probes
        assert member.ledger.spent(account="train").flops == 100 * handed[m]


def test_members_are_what_they_are_alone():
    """A member's curve does not depend on its company; one that passed waits without charge."""
    both = finish(engine(seeds=2))
    alone = finish(engine(seeds=1))
    drop = {"member"}
    first = [{k: v for k, v in r.items() if k not in drop} for r in both if r["member"] == 0]
    assert first == [{k: v for k, v in r.items() if k not in drop} for r in alone]


def test_resuming_anywhere_gives_the_same_records():
    whole = finish(engine(seeds=2))
    for stop in (0, 7, 150):
        e, before = engine(seeds=2), []
        for _ in range(stop):
            before += [
                ev.record | {"member": ev.member} for ev in e.advance() if isinstance(ev, Decided)
            ]
        arrays, meta = e.state()
        fresh = engine(seeds=2)
        fresh.load(arrays, meta)
        assert before + finish(fresh) == whole


def test_a_budget_censors_and_a_larger_one_goes_on_as_if_it_had_been_there():
    small, large = Limits(largest=20, samples=1000), Limits(largest=20, samples=100_000)
    e = engine(limits=small)
    records = finish(e)
    assert records[-1]["outcome"] == "censored"
    assert records[-1]["limit"] == "samples"
    assert 900 <= records[-1]["samples"] <= 1000
    arrays, meta = e.state()
    longer = engine(limits=large)
    longer.load(arrays, meta)
    assert records[:-1] + finish(longer) == finish(engine(limits=large))


def test_adaptation_never_starts_from_a_member_that_has_not_passed():
    records = finish(engine(limits=Limits(largest=20, samples=100), power=3.0))
    assert [(r["index"], r["outcome"]) for r in records] == [(0, "censored")]


def test_whole_interval_starts_each_size_from_the_base_model():
    protocol = WholeInterval(t0=4, delta=0.1, growth=1.5, batch=20, test=TEST, probes=())
    e = engine(protocol)
    records = finish(e)
    p0 = records[0]["spent"]
    for record in records[1:]:
        assert record["training_sizes"][0] == 4
        assert record["training_sizes"][-1] == record["size"]
        assert record["spent"] == p0 + record["samples"]
        assert record["spent"] > 10 * record["size"] ** 2  # from the base again, not from the last
    everything = sum(r["samples"] for r in records)
    assert e.members[0].ledger.spent(account="train").samples == everything


def test_a_stage_has_no_look_beyond_the_largest_number():
    protocol = Incremental(t0=4, delta=0.1, batch=1, test=SequentialTest(looks=5), probes=())
    records = finish(engine(protocol, power=4.0))
    assert records[0]["limit"] == "looks"
    assert len(records[0]["looks"]) == 5


def test_training_sizes_are_stratified_and_look_sizes_are_fixed():
    e = engine(
        Incremental(t0=40, delta=0.1, growth=1.5, batch=20, test=TEST, probes=()),
        Limits(largest=60, samples=100_000),
    )
    sizes: dict[int, list[int]] = {}
    step = e.learner.step

    def watching(batches):
        sizes.setdefault(e.members[0].stage, []).append(batches[0].size)
        return step(batches)

    e.learner.step = watching
    while events := e.advance():
        for event in events:
            if isinstance(event, Looked):
                assert event.size in (40, 60)
    assert set(sizes[0]) == {40}
    grid = e.protocol.training_sizes(1, 2)
    assert len(grid) == 8
    assert grid[-1] == 60
    for turn in range(len(sizes[1]) // 8):
        assert sorted(sizes[1][8 * turn : 8 * turn + 8]) == grid


def test_pac_replication_spends_its_budget_and_judges_once():
    protocol = PacReplication(
        t0=4, delta=0.1, growth=1.5, batch=20, test=TEST, probes=(), cost=2000.0, replicates=3
    )
    records = finish(engine(protocol, Limits(largest=9, samples=100_000)))
    assert [r["size"] for r in records] == [4, 6, 6, 6, 9, 9, 9]
    for record in records[1:]:
        budget = 2000 * math.log(record["size"] / 4)
        assert budget - 20 < record["samples"] <= budget
        assert len(record["looks"]) == 1
        # after P0 + budget samples the known error is T^2 / (1 + P)
        clearly = record["size"] ** 2 / (records[0]["spent"] + record["samples"])
        assert record["outcome"] == ("passed" if clearly < 0.1 else "failed")


def test_a_loss_that_is_not_finite_ends_its_member_alone():
    e = engine(seeds=2)
    step = e.learner.step

    def diverging(batches):
        taken = step(batches)
        if e.members[1].steps == 7 and taken[1] is not None:
            taken[1] = Step(float("nan"), taken[1].flops)
        return taken

    e.learner.step = diverging
    records = finish(e)
    assert [(r["outcome"], r["limit"]) for r in records if r["member"] == 1] == [
        ("censored", "loss not finite")
    ]
    alone = [{**r, "member": 0} for r in finish(engine())]
    assert [r for r in records if r["member"] == 0] == alone
    arrays, meta = e.state()
    again = engine(seeds=2, limits=Limits(largest=20, samples=1_000_000))
    again.load(arrays, meta)
    assert again.advance() == []
    assert is_final(next(r for r in records if r["member"] == 1), PROTOCOL, again.limits)


def test_the_baseline_account_holds_what_was_drawn():
    """A baseline that fits a predictor draws twice: both draws are charged."""

    class Fitted(Coin):
        def baselines(self, size, n, generator):
            self.sample(size, 3 * n, generator)
            return super().baselines(size, n, generator)

    streams = [Seed(0).child("seed", 0)]
    limits = Limits(largest=5, samples=100_000)
    e = Engine(Fitted(), KnownErrorConfig(0.0), PROTOCOL, limits, streams, CPU)
    (record,) = finish(e)
    assert e.members[0].ledger.spent(account="baseline").samples == 4 * PROTOCOL.baseline_samples
    assert 0.4 < record["baselines"]["constant"] < 0.6


def test_no_instance_is_drawn_twice():
    """Looks are on fresh instances: of no other look, of no training batch, of no other seed."""
    drawn: list[bytes] = []

    class Noted(Coin):
        def sample(self, size, n, generator):
            batch = super().sample(size, n, generator)
            drawn.extend(row.numpy().tobytes() for row in batch.inputs)
            return batch

    protocol = Incremental(t0=64, delta=0.1, growth=1.2, batch=20, test=TEST, probes=(2.0,))
    streams = [Seed(0).child("seed", s) for s in range(2)]
    limits = Limits(largest=80, samples=100_000)
    e = Engine(Noted(), KnownErrorConfig(1.5), protocol, limits, streams, CPU)
    finish(e)
    assert sum(m.ledger.spent().samples for m in e.members) == len(drawn) > 10_000
    assert len(set(drawn)) == len(drawn)  # of 2^64 and more: a chance of 1e-10 that two are equal


def test_labels_count_as_seen_if_they_occurred_in_the_base_stage_alone():
    """Where the answer is T, no label of a later stage is seen, however long it is trained on."""

    class SayTheSize(Coin):
        def solve(self, inputs):
            return torch.full((len(inputs),), inputs.shape[1])

    streams = [Seed(0).child("seed", 0)]
    limits = Limits(largest=9, samples=100_000)
    records = finish(Engine(SayTheSize(), KnownErrorConfig(), PROTOCOL, limits, streams, CPU))
    assert [record["samples"] > 0 for record in records] == [True] * 3
    for record in records:
        for look in record["looks"]:
            seen = look["n"] if record["index"] == 0 and look["samples"] else 0
            assert (look["seen"]["n"], look["unseen"]["n"]) == (seen, look["n"] - seen)
            split = look["seen" if seen else "unseen"]
            assert split["error"] == look["error"]


def test_acting_members_get_batches_of_one_size_and_their_own_instances():
    """What a stacked population needs: equal sizes; what seeds need: instances of their own."""
    e = engine(
        Incremental(t0=10, delta=0.1, growth=1.5, batch=20, test=TEST, probes=()),
        Limits(largest=15, samples=100_000),
        seeds=3,
    )
    step = e.learner.step
    pairs = []

    def watching(batches):
        acting = [batch for batch in batches if batch is not None]
        assert len({batch.size for batch in acting}) == 1
        pairs.extend(torch.equal(acting[0].inputs, other.inputs) for other in acting[1:])
        return step(batches)

    e.learner.step = watching
    finish(e)
    assert pairs
    assert not any(pairs)


def test_batches_made_ahead_are_the_same_and_only_those_used_are_charged():
    drawn: list[int] = []  # appending is safe in threads

    class Prepared(Coin):
        def on_gpu(self, size):
            return False

        def sample(self, size, n, generator):
            drawn.append(n)
            return super().sample(size, n, generator)

    def records(workers):
        streams = [Seed(0).child("seed", s) for s in range(2)]
        limits = Limits(largest=9, samples=100_000)
        e = Engine(Prepared(), KnownErrorConfig(2.0), PROTOCOL, limits, streams, CPU, workers)
        return finish(e), e

    ahead, e = records(3)
    sampled = sum(drawn)
    assert ahead == records(0)[0]
    charged = sum(m.ledger.spent().samples for m in e.members)
    assert sampled > charged  # some were made for a stage that was over
    assert charged == sum(drawn) - sampled  # without threads none is


def test_all_threads_make_batches_for_one_member():
    """The first five batches are only made together: fewer at a time would wait in vain."""
    together, begun = threading.Barrier(5), itertools.count()

    class Slow(Coin):
        def sample(self, size, n, generator):
            if next(begun) < 5:
                together.wait(timeout=30)
            return super().sample(size, n, generator)

    def request(number):
        return Seed(0).child(number), 9, 4

    ahead = Ahead(Slow(), CPU, workers=5)
    for number in range(8):
        batch = ahead.take(request(number), lambda k, at=number: request(at + k))
        expected = Coin().sample(9, 4, torch_generator(request(number)[0]))
        assert torch.equal(batch.inputs, expected.inputs)
