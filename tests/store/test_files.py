"""The primitives: their order, what a failure leaves behind, what is refused."""

import pytest

from algocapture.store import StoreError, files


@pytest.fixture
def trace(monkeypatch):
    seen = []
    monkeypatch.setattr(files, "fault", lambda point, path: seen.append((point, path.name)))
    return seen


def test_a_file_is_durable_before_it_has_its_name_and_its_name_after(tmp_path, trace):
    """A kill cannot show a missing fsync (the kernel lives on), so the order itself is tested."""
    files.write_atomic(tmp_path / "a", b"new")
    assert trace == [
        ("create", "a"),
        ("write", "a"),
        ("fsync", "a"),
        ("rename", "a"),
        ("fsync-folder", tmp_path.name),
    ]


@pytest.mark.parametrize("point", ["create", "write", "fsync", "rename", "fsync-folder"])
def test_a_failure_leaves_the_old_or_the_new(tmp_path, monkeypatch, point):
    (tmp_path / "a").write_bytes(b"old")

    def fail(at, path):
        if at == point:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "fault", fail)
    with pytest.raises(StoreError, match="No space left on device"):
        files.write_atomic(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == (b"new" if point == "fsync-folder" else b"old")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_short_writes_are_continued(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "fault", lambda point, path: 3)
    files.write_atomic(tmp_path / "a", bytes(range(100)))
    assert (tmp_path / "a").read_bytes() == bytes(range(100))
    monkeypatch.setattr(files, "fault", lambda point, path: 0)
    with pytest.raises(StoreError, match="cannot write"):
        files.write_atomic(tmp_path / "a", b"new")


def test_write_new_is_exclusive(tmp_path):
    assert files.write_new(tmp_path / "a", b"1")
    assert not files.write_new(tmp_path / "a", b"2")
    assert (tmp_path / "a").read_bytes() == b"1"
    assert files.names(tmp_path) == ["a"]


def test_leftovers_are_ignored_and_cleaned(tmp_path):
    (tmp_path / f"{files.TEMPORARY}1-a").write_bytes(b"half")
    (tmp_path / "b").write_bytes(b"")
    assert files.names(tmp_path) == ["b"]
    files.clean(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["b"]


def test_what_is_not_there(tmp_path):
    with pytest.raises(files.MissingError, match="does not exist"):
        files.read(tmp_path / "a")
    assert files.names(tmp_path / "a") == []
    files.remove(tmp_path / "a")
    (tmp_path / "file").write_bytes(b"")
    for act in (files.names, files.make_folder):
        with pytest.raises(StoreError, match=r"Not a directory|File exists"):
            act(tmp_path / "file")
    with pytest.raises(StoreError, match="Not a directory"):
        files.read(tmp_path / "file" / "below")
