"""A run's state in an object store, or in a folder elsewhere, through fsspec.

    config.json                             as in the run's folder; replaced when it is extended
    unit-000/commit-000003-00000007-HASH    what unit 0 needs to continue after 3 settled stages
    objects/SHA256                          checkpoints (with their stages) and kept weights
    meta.json, result.json                  as in the run's folder, the result last

Work is local; what it left is published. Objects are immutable and named by their content, a
commit names the objects that belong together, and readers take the last commit whose objects are
whole. So nothing is asked of the store but that a finished upload can be read: no lock, no rename,
no atomic overwrite. Two workers of one unit publish two chains of commits, each true in itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import fsspec

import algocapture.store.files as files
import algocapture.store.records as records
import algocapture.store.stages as stages
from algocapture.config import difference
from algocapture.store.files import MissingError, StoreError
from algocapture.store.run import RunFolder, decode_config
from algocapture.store.stages import CONFIG, META, RESULT, Body
from algocapture.store.unit import UnitFolder, parse

_COMMIT = re.compile(r"commit-(\d{6})-(\d{8})-[0-9a-f]{16}")
_SHA = re.compile(r"[0-9a-f]{64}")
KEEP = 2  # commits of one chain whose checkpoints are kept

Stamp = tuple[int, int, int]  # of a file: inode, time and size change when it is replaced


@dataclass
class Published:
    """One run at a URL. What this process knows to be there is not uploaded again."""

    url: str
    _there: set[str] = field(default_factory=set)  # objects
    _damaged: set[str] = field(default_factory=set)  # commits that are not whole: put again
    _hashes: dict[tuple[Path, Stamp], str] = field(default_factory=dict)
    _chain: dict[int, list[tuple[str, str]]] = field(default_factory=dict)  # commit, checkpoint

    def __post_init__(self) -> None:
        if "://" not in self.url:
            raise StoreError(f"{self.url!r} is no URL: write s3://bucket/run or file:///folder/run")
        try:
            self.fs, self.root = fsspec.core.url_to_fs(self.url)
        except (ImportError, ValueError) as error:
            raise StoreError(f"URL {self.url!r}: {error}") from error
        if "file" in self.fs.protocol:  # the same folder for every worker, wherever it stands
            self.url = f"file://{self.root}"

    # --- the run

    def config(self) -> bytes:
        """config.json as it was published."""
        if (data := self._get(f"{CONFIG}.json")) is None:
            raise MissingError(f"{self.url} is no published run: it has no {CONFIG}.json")
        return data

    def described(self) -> tuple[str, Body]:
        """The digest and the configuration of the run that is there."""
        return decode_config(self.config(), Path(f"{self.url}/{CONFIG}.json"))

    def attach(self, run: RunFolder) -> None:
        """Publish the run's configuration; refused if another run is there, or it is itself."""
        own = run.path.resolve()
        if "file" in self.fs.protocol and Path(self.root).resolve().is_relative_to(own):
            raise StoreError(f"{self.url} lies in the run's own folder: publish to another place")
        with contextlib.suppress(MissingError):
            held, body = self.described()
            if held != run.digest:
                lines = "\n  ".join(difference(body["identity"], run.identity))
                raise StoreError(f"{self.url} holds another run:\n  {lines}")
        self.put_top(run, CONFIG)

    def put_top(self, run: RunFolder, name: str) -> None:
        """Publish config, meta or result as they are in the run's folder."""
        assert name in (CONFIG, META, RESULT), f"{name} is no top file"
        data = files.read(run.path / f"{name}.json")
        if self._get(f"{name}.json") != data:
            self._put(f"{name}.json", data)

    def get_top(self, run: RunFolder) -> None:
        """Bring meta and result, if they were published, into the run's folder."""
        for name in (META, RESULT):
            if (data := self._get(f"{name}.json")) is not None:
                path = run.path / f"{name}.json"
                envelope = records.decode_record(data, path)
                records.check_place(envelope, path, place=name, run=run.digest)
                files.write_atomic(path, data)

    def units(self) -> list[int]:
        """The units of which something was published."""
        return sorted(
            int(match[1])
            for name in self._names("")
            if (match := stages.UNIT.fullmatch(name)) is not None
        )

    # --- a unit, whose folder is held

    def push(self, run: RunFolder, unit: int, decided: Mapping[int, Sequence[Body]]) -> None:
        """Publish the newest checkpoint of a unit, which holds its decided stages, and the kept
        weights of its seeds."""
        folder = run.path / stages.unit_name(unit)
        numbers = stages.numbered(folder, stages.CHECKPOINT)
        if not numbers:
            return
        newest = folder / f"checkpoint-{numbers[-1]:08d}.safetensors"
        settled = sum(map(stages.settled, decided.values()))
        mark = self._sha(newest)[:16]
        place = f"{stages.unit_name(unit)}/commit-{settled:06d}-{numbers[-1]:08d}-{mark}"
        if place not in self._damaged and place.partition("/")[2] in self._commits(unit):
            return
        held = [newest]
        for seed in decided:
            of_seed = run.path / stages.seed_name(seed)
            held += [
                of_seed / f"{stages.model_name(k)}.safetensors"
                for k in stages.numbered(of_seed, stages.MODEL)
            ]
        objects = {str(path.relative_to(run.path)): self._put_object(path) for path in held}
        checkpoint = str(newest.relative_to(run.path))
        body = {"checkpoint": checkpoint, "objects": objects, "seeds": list(decided)}
        self._put(place, records.encode_record(body, place=place, run=run.digest))
        self._damaged.discard(place)
        self._forget(unit, place, objects[checkpoint])

    def pull(self, run: RunFolder, unit: UnitFolder, number: int) -> bool:
        """Put the furthest published checkpoint into the folder, if it is further than what is
        there; True if it was. `restore` then writes its stages."""
        mine, tried = _furthest(unit.folder), set[str]()
        while further := [n for n in self._commits(number) if _rank(n) > mine and n not in tried]:
            tried.add(further[0])
            place = f"{unit.name}/{further[0]}"
            try:
                body = self._commit(run, place)
                self._install(run, unit, body)
            except StoreError as error:  # damaged, or its worker went on and removed it: look again
                run.notify(f"{error}; another commit is used")
                self._damaged.add(place)
                continue
            self._chain.setdefault(number, []).append((place, body["objects"][body["checkpoint"]]))
            return True
        return False

    def seeds(self, run: RunFolder, number: int) -> list[int]:
        """The seeds of a published unit."""
        for name in self._commits(number):
            with contextlib.suppress(StoreError):
                seeds: list[int] = self._commit(run, f"{stages.unit_name(number)}/{name}")["seeds"]
                return seeds
        return []

    def _commits(self, number: int) -> list[str]:
        """The furthest first: names sort by settled stages, then by checkpoint."""
        found = self._names(stages.unit_name(number))
        return sorted(filter(_COMMIT.fullmatch, found), reverse=True)

    def _commit(self, run: RunFolder, place: str) -> Body:
        data = self._get(place)
        path = Path(f"{self.url}/{place}")
        if data is None:
            raise MissingError(f"{path} is gone")
        envelope = records.decode_record(data, path)
        records.check_place(envelope, path, place=place, run=run.digest)
        body = envelope["body"]
        if not _is_commit(body, place.partition("/")[0]):
            raise records.damaged(path, "it is not a commit")
        return dict(body)

    def _install(self, run: RunFolder, unit: UnitFolder, body: Body) -> None:
        """The checkpoint comes last: with it the rest is there."""
        order = sorted(body["objects"], key=lambda place: place == body["checkpoint"])
        for place in order:
            path, sha = run.path / place, body["objects"][place]
            if not path.exists() or self._sha(path) != sha:
                files.make_folder(path.parent)
                files.write_atomic(path, self._object(sha))
            self._there.add(sha)
        for later in stages.numbered(unit.folder, stages.CHECKPOINT):
            if later > _number(body["checkpoint"]):  # of a chain that came less far
                files.remove(unit.folder / f"checkpoint-{later:08d}.safetensors")

    def _forget(self, unit: int, place: str, sha: str) -> None:
        """Remove what this chain has left behind. That it cannot be removed costs only room."""
        chain = [entry for entry in self._chain.get(unit, []) if entry[0] != place]
        chain.append((place, sha))
        self._chain[unit] = chain[-KEEP:]
        kept = {sha for _, sha in self._chain[unit]}
        for old, of_old in chain[:-KEEP]:
            with contextlib.suppress(StoreError, OSError):
                self.fs.rm_file(f"{self.root}/{old}")
                if of_old not in kept:
                    self.fs.rm_file(f"{self.root}/objects/{of_old}")

    # --- objects

    def _sha(self, path: Path) -> str:
        stat = path.stat()
        key = (path, (stat.st_ino, stat.st_mtime_ns, stat.st_size))
        if key not in self._hashes:
            self._hashes[key] = hashlib.sha256(files.read(path, files.memory())).hexdigest()
        return self._hashes[key]

    def _put_object(self, path: Path) -> str:
        sha = self._sha(path)
        if sha not in self._there:
            self._put(f"objects/{sha}", files.read(path, files.memory()))
            self._there.add(sha)
        return sha

    def _object(self, sha: str) -> bytes:
        data = self._get(f"objects/{sha}", files.memory())
        if data is None or hashlib.sha256(data).hexdigest() != sha:
            raise StoreError(f"{self.url}/objects/{sha} is missing or damaged")
        return data

    def _put(self, place: str, data: bytes) -> None:
        with self._told("write", place):
            self.fs.makedirs(f"{self.root}/{place}".rpartition("/")[0], exist_ok=True)
            self.fs.pipe_file(f"{self.root}/{place}", data)

    def _get(self, place: str, most: int = files.MOST) -> bytes | None:
        """None if it is not there; refused like a local file if it is no file, or too large."""
        with self._told("read", place):
            try:
                found = self.fs.info(f"{self.root}/{place}")
                if found["type"] != "file" or (found["size"] or 0) > most:
                    raise StoreError(
                        f"cannot read {self.url}/{place}: {found['type']} of {found['size']} "
                        f"bytes, expected a file of at most {most:,}"
                    )
                data: bytes = self.fs.cat_file(f"{self.root}/{place}")
            except FileNotFoundError:
                return None
            return data

    def _names(self, place: str) -> list[str]:
        with self._told("list", place):
            self.fs.invalidate_cache()
            try:
                found = self.fs.ls(f"{self.root}/{place}".rstrip("/"), detail=False)
            except FileNotFoundError:
                return []
        return [str(name).rstrip("/").rpartition("/")[2] for name in found]

    @contextlib.contextmanager
    def _told(self, what: str, place: str) -> Iterator[None]:
        try:
            yield
        except StoreError:
            raise
        except Exception as error:  # each store has errors of its own
            raise StoreError(
                f"cannot {what} {self.url}/{place}: {type(error).__name__}: {error}; what is local "
                "is kept: try again when the store answers"
            ) from error


def _stages(checkpoint: Path) -> dict[int, list[Body]]:
    arrays, envelope = records.decode_tensors(files.read(checkpoint, files.memory()), checkpoint)
    found = parse(checkpoint, arrays, envelope["body"]).stages
    return {seed: list(of) for seed, of in found.items()}


def _furthest(folder: Path) -> tuple[int, int]:
    """Settled stages and number of the newest whole checkpoint; (-1, -1) if there is none."""
    for number in reversed(stages.numbered(folder, stages.CHECKPOINT)):
        with contextlib.suppress(StoreError):
            held = _stages(folder / f"checkpoint-{number:08d}.safetensors")
            return sum(stages.settled(of) for of in held.values()), number
    return -1, -1


def _rank(name: str) -> tuple[int, int]:
    match = _COMMIT.fullmatch(name)
    assert match is not None, f"{name} is no commit"
    return int(match[1]), int(match[2])


def _number(place: str) -> int:
    match = stages.CHECKPOINT.fullmatch(place.rpartition("/")[2])
    assert match is not None, f"{place} is no checkpoint"
    return int(match[1])


def _is_commit(body: object, unit: str) -> bool:
    """Its names lie in this unit and its seeds, and nowhere else: they become paths."""
    if not isinstance(body, dict) or set(body) != {"checkpoint", "objects", "seeds"}:
        return False
    objects, seeds = body["objects"], body["seeds"]
    if not isinstance(objects, dict) or not isinstance(seeds, list):
        return False
    if not all(type(seed) is int and seed >= 0 for seed in seeds):
        return False
    folders = {stages.seed_name(seed) for seed in seeds}
    for place, sha in objects.items():
        folder, _, name = place.partition("/")
        model = folder in folders and stages.MODEL.fullmatch(name)
        checkpoint = place == body["checkpoint"] and folder == unit
        if not (model or (checkpoint and stages.CHECKPOINT.fullmatch(name))):
            return False
        if not isinstance(sha, str) or not _SHA.fullmatch(sha):
            return False
    return body["checkpoint"] in objects
