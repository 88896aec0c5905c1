"""The one place that touches the disk: write, fsync, rename, link, list, read, remove.

Every primitive first passes `_point`, where a test may kill the process, raise an error
or shorten a write. A file is written under a temporary name in the same folder, synced,
renamed, and the folder is synced: a reader sees the old bytes or the new ones.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

TEMPORARY = ".tmp-"
MOST = 2**28  # bytes of a file that is parsed: some 40,000 stages

# Called as fault(point, path) before each primitive. For the point "write" it may return the
# largest number of bytes that the next system call writes, as a full disk or a signal would.
Fault = Callable[[str, Path], int | None]
fault: Fault | None = None


class StoreError(ValueError):
    """A run's folder that cannot be read, written or entered: one line, and what to do."""


def _point(name: str, path: Path) -> int | None:
    return fault(name, path) if fault is not None else None


def _why(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)


def write_atomic(path: Path, data: bytes, durable: bool = True) -> None:
    """Replace `path` by `data`: after a crash it holds the old bytes or the new, never neither."""
    temp = _temporary(path)
    try:
        _fill(temp, path, data, durable)
        _point("rename", path)
        os.replace(temp, path)
        if durable:
            sync_folder(path.parent)
    except OSError as error:
        _discard(temp)
        raise StoreError(
            f"cannot write {path}: {_why(error)}; what was there is unchanged: make room or "
            "permit writing, then resume"
        ) from error


def write_new(path: Path, data: bytes) -> bool:
    """Create `path` with `data` unless it exists; of several processes exactly one succeeds.

    link(2) is atomic on local disks and on NFS, and the name never shows a partial file.
    Not synced: it is for locks, which a reboot releases anyway.
    """
    temp = _temporary(path)
    try:
        _fill(temp, path, data, durable=False)
        _point("link", path)
        os.link(temp, path)
    except FileExistsError:
        return False
    except OSError as error:
        raise StoreError(f"cannot write {path}: {_why(error)}") from error
    finally:
        _discard(temp)
    return True


def _temporary(path: Path) -> Path:
    return path.parent / f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(4)}-{path.name}"


def _discard(temp: Path) -> None:
    with contextlib.suppress(OSError):
        os.unlink(temp)


def _fill(temp: Path, path: Path, data: bytes, durable: bool) -> None:
    _point("create", path)
    handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        rest = memoryview(data)
        while rest:
            at_most = _point("write", path)
            written = os.write(handle, rest if at_most is None else rest[:at_most])
            if written == 0:  # no progress and no error: give up rather than spin
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            rest = rest[written:]
        if durable:
            _point("fsync", path)
            os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Make renames, links and removals in a folder durable."""
    _point("fsync-folder", folder)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that cannot sync folders
            raise
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents, durably. It may exist."""
    try:
        if not folder.parent.is_dir():
            make_folder(folder.parent)
        if not folder.is_dir():
            _point("mkdir", folder)
            folder.mkdir(exist_ok=True)
            sync_folder(folder.parent)
    except OSError as error:
        raise StoreError(f"cannot make the folder {folder}: {_why(error)}") from error


def memory() -> int:
    """Bytes that a file may have at most if it is to be held at all: half of this machine's."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def read(path: Path, most: int = MOST) -> bytes:
    """The bytes of a regular file. Links, pipes and devices are refused: they may hang or leak;
    so is a file of more than `most` bytes, which may have holes and take no disk at all."""
    _point("read", path)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise MissingError(f"{path} does not exist") from error
    except OSError as error:
        raise StoreError(f"cannot read {path}: {_why(error)}") from error
    with os.fdopen(handle, "rb") as file:
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise StoreError(f"cannot read {path}: not a regular file")
            if found.st_size > most:
                raise StoreError(f"cannot read {path}: {found.st_size:,} bytes, at most {most:,}")
            return file.read(found.st_size)
        except OSError as error:
            raise StoreError(f"cannot read {path}: {_why(error)}") from error


def refuse_link(folder: Path) -> None:
    """Inside a run nothing is a link: through one, work would land in somebody else's folder."""
    if folder.is_symlink():
        raise StoreError(f"{folder} is a symbolic link: put the folder itself there")


class MissingError(StoreError):
    """A file that is not there."""


def names(folder: Path) -> list[str]:
    """What a folder holds, sorted, without temporary leftovers; nothing if it does not exist."""
    _point("list", folder)
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith(TEMPORARY))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"cannot list {folder}: {_why(error)}") from error


def remove(path: Path) -> None:
    """Remove a file; it may be gone already."""
    _point("remove", path)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"cannot remove {path}: {_why(error)}") from error


def clean(folder: Path) -> None:
    """Remove the leftovers of writers that died. Only whoever holds the folder's lock may."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(TEMPORARY):
                _point("remove", folder / name)
                _discard(folder / name)
