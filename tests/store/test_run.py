"""A run's folder: identity, extension, stages, checkpoints, verification."""

import json

import numpy as np
import pytest

from algocapture.store import Checkpoint, RunFolder, StoreError, read_table, verify

IDENTITY = {"type": "Experiment", "task": {"type": "Induction", "vocab": 16}, "delta": 0.05}


def stage(index):
    return {"size": 8 + index, "spent": 100 * index, "looks": [{"n": 1}], "test": {"error": 0.1}}


def checkpoint(step, seeds=(0,)):
    return Checkpoint(
        {"weight": np.full(3, step, np.float32)},
        {"step": step},
        {seed: [stage(i) for i in range(step)] for seed in seeds},
    )


@pytest.fixture
def path(tmp_path):
    """A finished run of one seed with three stages."""
    with RunFolder.enter(tmp_path / "run", IDENTITY, {"seeds": 1}) as run:
        with run.unit(0, [0]) as unit:
            assert unit.restore() is None
            for step in range(1, 4):
                unit.commit(checkpoint(step), {0: {"w": np.full(2, step, np.float32)}})
        run.write_meta({"device": "cpu"})
        run.write_note("eval", {"sizes": [8]})
        run.write_result()
    return tmp_path / "run"


def test_what_was_written_is_read(path):
    run = RunFolder(path)
    assert run.identity == IDENTITY
    assert run.extension == {"seeds": 1}
    assert run.seeds() == [0]
    assert run.stages(0) == [stage(0), stage(1), stage(2)]
    assert run.stages(1) == []
    assert run.read_result() == run.result()
    assert run.result() == {
        "identity": IDENTITY,
        "seeds": [{"seed": 0, "stages": run.stages(0)}],
    }
    assert run.read_meta() == {"device": "cpu"}
    assert run.read_note("eval") == {"sizes": [8]}
    assert run.read_note("absent") is None
    assert run.notes() == ["eval"]
    assert run.models(0) == [0, 1, 2]
    np.testing.assert_array_equal(run.load_model(0, 1)["w"], [2, 2])
    report = verify(path)
    assert report.ok
    assert (report.stages, report.result) == (3, "matches")


def test_only_two_checkpoints_stay(path):
    kept = sorted(p.name for p in (path / "unit-000").glob("*.safetensors"))
    assert kept == ["checkpoint-00000002.safetensors", "checkpoint-00000003.safetensors"]
    with RunFolder(path).unit(0, [0]) as unit:
        saved = unit.restore()
        assert saved.state == {"step": 3}
        assert saved.stages == {0: [stage(0), stage(1), stage(2)]}
        np.testing.assert_array_equal(saved.arrays["weight"], [3, 3, 3])


def test_another_identity_is_refused_with_the_difference(path):
    other = IDENTITY | {"task": {"type": "Induction", "vocab": 32}}
    before = (path / "config.json").read_bytes()
    with (
        pytest.raises(StoreError, match=r"task\.vocab: 16 -> 32"),
        RunFolder.enter(path, other, {}),
    ):
        pass
    assert (path / "config.json").read_bytes() == before


def test_another_extension_extends(path):
    with RunFolder.enter(path, IDENTITY, {"seeds": 5}) as run:
        assert run.extension == {"seeds": 5}
        with run.unit(1, [1]) as unit:
            unit.restore()
            unit.commit(checkpoint(1, (1,)))
        assert verify(path).result == "older than the stages"
        run.write_result()
    assert verify(path).result == "matches"
    assert [c["seed"] for c in RunFolder(path).read_result()["seeds"]] == [0, 1]


def test_a_changed_recipe_file_is_refused(tmp_path):
    with RunFolder.enter(tmp_path, IDENTITY, {}, recipe="a" * 64):
        pass
    with RunFolder.enter(tmp_path, IDENTITY, {}) as run:  # unknown now: what is known stays
        assert run.recipe == "a" * 64
    with (
        pytest.raises(StoreError, match="recipe file changed"),
        RunFolder.enter(tmp_path, IDENTITY, {}, recipe="b" * 64),
    ):
        pass


def test_foreign_folders_are_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with (
        pytest.raises(StoreError, match=r"not a run and not empty \(it holds 'thesis.tex'"),
        RunFolder.enter(tmp_path, IDENTITY, {}),
    ):
        pass
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]
    for absent in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(StoreError, match="is not a run"):
            RunFolder(absent)
    with pytest.raises(StoreError, match="Not a directory"):
        RunFolder(tmp_path / "thesis.tex")


def test_stages_are_immutable(path):
    run = RunFolder(path)
    run.append_stage(0, 2, stage(2))
    with pytest.raises(StoreError, match="another outcome"):
        run.append_stage(0, 2, stage(7))
    with pytest.raises(StoreError, match="gap"):
        run.append_stage(0, 4, stage(4))
    run.append_stage(0, 3, stage(3))
    assert len(RunFolder(path).stages(0)) == 4


def test_a_censored_stage_is_continued_by_a_larger_budget(path):
    """...and only then may a decided file change; its result counts as older, not as false."""
    censored = stage(3) | {"outcome": "censored"}
    passed = stage(3) | {"outcome": "passed", "spent": 900}
    run = RunFolder(path)
    with run.unit(0, [0]) as unit:
        unit.restore()
        unit.commit(Checkpoint({}, {}, {0: [*checkpoint(3).stages[0], censored]}))
    run.write_result()
    with run.unit(0, [0]) as unit:
        unit.restore()
        unit.commit(Checkpoint({}, {}, {0: [*checkpoint(3).stages[0], passed]}))
    (path / "unit-000" / "checkpoint-00000005.safetensors").unlink()
    with RunFolder(path, lambda message: None).unit(0, [0]) as unit:
        assert unit.restore().stages[0][3] == censored  # an older checkpoint undoes nothing
    run.append_stage(0, 3, censored)
    with pytest.raises(StoreError, match="another outcome"):
        run.append_stage(0, 3, passed | {"spent": 901})
    assert run.stages(0)[3] == passed
    assert verify(path).result == "older than the stages"
    assert verify(path).ok


def test_a_missing_stage_is_reported_and_restored(path):
    (path / "seed-0000" / "stage-001.json").unlink()
    with pytest.raises(StoreError, match=r"stage-001\.json is missing"):
        RunFolder(path).stages(0)
    assert not verify(path).ok
    with RunFolder(path).unit(0, [0]) as unit:
        unit.restore()
    assert verify(path).ok


def test_a_damaged_stage_is_repaired_from_the_checkpoint(path):
    victim = path / "seed-0000" / "stage-001.json"
    victim.write_bytes(victim.read_bytes().replace(b"100", b"900"))
    with pytest.raises(StoreError, match="SHA-256"):
        RunFolder(path).stages(0)
    said = []
    with RunFolder(path, said.append).unit(0, [0]) as unit:
        unit.restore()
    assert "written again" in said[0]
    assert verify(path).ok


def test_a_damaged_checkpoint_gives_way_to_the_previous(path):
    newest = path / "unit-000" / "checkpoint-00000003.safetensors"
    newest.write_bytes(newest.read_bytes()[:-1])
    assert [p.path for p in verify(path).problems] == ["unit-000/checkpoint-00000003.safetensors"]
    said = []
    with RunFolder(path, said.append).unit(0, [0]) as unit:
        assert unit.restore().state == {"step": 2}
        assert "the previous checkpoint is used" in said[0]
        with pytest.raises(StoreError, match="another outcome"):
            unit.commit(Checkpoint({}, {}, {0: [*checkpoint(2).stages[0], stage(9)]}))
        unit.commit(checkpoint(3))  # decides the third stage again, the same
    assert verify(path).result == "matches"


def test_on_an_inexact_device_later_stages_go_with_their_checkpoint(path):
    newest = path / "unit-000" / "checkpoint-00000003.safetensors"
    newest.unlink()
    run = RunFolder(path, lambda message: None)
    with run.unit(0, [0], exact=False) as unit:
        assert unit.restore().state == {"step": 2}
        assert len(run.stages(0)) == 2
        unit.commit(Checkpoint({}, {}, {0: [*checkpoint(2).stages[0], stage(9)]}))
    assert run.stages(0)[2] == stage(9)


def test_all_checkpoints_lost_means_starting_afresh(path):
    for file in (path / "unit-000").glob("*.safetensors"):
        file.write_bytes(b"")
    with RunFolder(path, lambda message: None).unit(0, [0]) as unit:
        assert unit.restore() is None
        for step in range(1, 4):
            unit.commit(checkpoint(step))
    assert verify(path).ok


def test_misplaced_and_foreign_files_are_noticed(path):
    first, second = (path / "seed-0000" / f"stage-00{i}.json" for i in (0, 1))
    second.write_bytes(first.read_bytes())
    (path / "seed-0000" / "notes.txt").write_text("x")
    (path / "seed-00000").mkdir()
    (path / "link").symlink_to("/etc")
    found = {problem.path: problem.message for problem in verify(path).problems}
    assert "was written as 'seed-0000/stage-000'" in found.pop("seed-0000/stage-001.json")
    assert verify(path).result == "not compared"
    assert set(found) == {"seed-0000/notes.txt", "seed-00000", "link"}


def test_files_of_another_run_are_noticed(path, tmp_path):
    with RunFolder.enter(tmp_path / "b", IDENTITY | {"delta": 0.1}, {}) as other:
        (tmp_path / "b" / "seed-0000").mkdir()
        copied = tmp_path / "b" / "seed-0000" / "stage-000.json"
        copied.write_bytes((path / "seed-0000" / "stage-000.json").read_bytes())
        with pytest.raises(StoreError, match="belongs to another run"):
            other.stages(0)


def test_a_false_result_is_noticed(path):
    run = RunFolder(path)
    body = run.result()
    body["seeds"][0]["stages"][0]["spent"] = 1
    run.append_stage(0, 3, stage(3))
    from algocapture.store import records

    records.write_record(path / "result.json", body, place="result", run=run.digest)
    assert verify(path).result == "differs"
    assert [p.path for p in verify(path).problems] == ["result.json"]


def test_special_files_are_refused(path):
    import os

    victim = path / "seed-0000" / "stage-000.json"
    victim.unlink()
    os.mkfifo(victim)
    with pytest.raises(StoreError, match="not a regular file"):
        RunFolder(path).stages(0)
    (path / "result.json").unlink()
    (path / "result.json").symlink_to(path / "config.json")
    with pytest.raises(StoreError, match="cannot read"):
        RunFolder(path).read_result()


@pytest.mark.parametrize("name", ["../x", "A", "", "a/b", "a" * 65, "x\n"])
def test_notes_cannot_leave_the_folder(path, name):
    with pytest.raises(StoreError, match="a note's name"):
        RunFolder(path).write_note(name, {})


@pytest.mark.parametrize("seed", [-1, True, "0", 1.0])
def test_seeds_are_integers(path, seed):
    with pytest.raises(StoreError, match="seed must be an integer"):
        RunFolder(path).stages(seed)


def test_table(path, tmp_path):
    rows = read_table([path])
    assert rows[2] == {
        "type": "Experiment", "task.type": "Induction", "task.vocab": 16, "delta": 0.05,
        "size": 10, "spent": 200, "test.error": 0.1,
        "run": str(path), "digest": RunFolder(path).digest, "seed": 0, "stage": 2,
    }  # fmt: skip
    with pytest.raises(StoreError):
        read_table([tmp_path])
    errors = []
    assert len(read_table([tmp_path, path], errors.append)) == 3
    assert len(errors) == 1


def test_records_are_readable_json(path):
    config = json.loads((path / "config.json").read_text())
    assert config["schema"] == 1
    assert config["body"]["identity"] == IDENTITY
