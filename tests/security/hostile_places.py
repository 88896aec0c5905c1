"""Study folders and published stores, forged as `hostile.py` forges runs."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from pathlib import Path

from algocapture.config import digest, from_json
from algocapture.experiment import drive
from algocapture.launch import Inline
from algocapture.store import RunFolder, records
from algocapture.studies import Study
from tests.experiment.tiny import tiny
from tests.security.hostile import VERBS, changed, complaint, complaints, seal
from tests.security.hostile import _forge_tensors as forge_tensors

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
STUDIES = ("epths", "kernel_errors", "lemmas")  # whose data lie there
STUDY_VERBS: list[tuple[str, ...]] = [
    ("status",), ("status", "--json"), ("verify",), ("verdict",), ("report",),
    ("resume", "--launcher", "inline", "--time-limit", "0", "--quiet"),
]  # fmt: skip


def good_study(folder: Path, name: str) -> Path:
    """A finished study as its folder was, without measuring again."""
    body = json.loads((RESULTS / name / "result.json").read_bytes())["body"]
    study = from_json(body["identity"])
    assert isinstance(study, Study)
    with RunFolder.enter(folder, body["identity"], {"parts": list(study.parts())}) as run:
        for part, rows in body["parts"].items():
            run.write_part(part, rows)
        run.write_meta({"sessions": []})
        run.write_result()
    return folder


def good_store(folder: Path) -> Path:
    """What a finished run has published."""
    drive(tiny(), folder.parent / "published", Inline(), publish=f"file://{folder}")
    shutil.rmtree(folder.parent / "published")
    return folder


def forge_store(store: Path, draw: random.Random) -> bool:
    """Change the content of one file of a store; whatever names it by its hash follows."""
    chosen = draw.choice(sorted(store.iterdir()))
    if chosen.is_dir():
        chosen = draw.choice(sorted(chosen.iterdir()))
    times = draw.choice([1, 1, 2, 5])
    if chosen.parent.name == "objects":
        _, envelope = records.decode_tensors(chosen.read_bytes(), chosen)
        if not forge_tensors(chosen, envelope["place"], draw, times):
            return False
        rename(store, chosen)
        return True
    envelope = json.loads(chosen.read_bytes())
    body = changed(envelope["body"], draw, times)
    if chosen.name != "config.json":
        return seal(chosen, body, envelope["place"], envelope["run"])
    return reseal_store(store, body)


def rename(store: Path, item: Path) -> None:
    """Give an object the name that its content has now."""
    new = hashlib.sha256(item.read_bytes()).hexdigest()
    for commit in store.glob("unit-*/commit-*"):
        envelope = json.loads(commit.read_bytes())
        objects = envelope["body"]["objects"]
        body = envelope["body"] | {
            "objects": {k: new if sha == item.name else sha for k, sha in objects.items()}
        }
        assert seal(commit, body, envelope["place"], envelope["run"])
    item.rename(item.with_name(new))


def reseal_store(store: Path, config: object) -> bool:
    """Publish another configuration, and all that is there as of that run."""
    identity = config.get("identity") if isinstance(config, dict) else None
    try:
        run = digest(identity) if isinstance(identity, dict) else "0" * 64
    except (ValueError, RecursionError):
        return False
    if not seal(store / "config.json", config, "config", run):
        return False
    for item in sorted(store.glob("objects/*")):
        arrays, envelope = records.decode_tensors(item.read_bytes(), item)
        place = envelope["place"]
        item.write_bytes(records.encode_tensors(arrays, envelope["body"], place=place, run=run))
        rename(store, item)
    for path in [store / "meta.json", store / "result.json", *store.glob("unit-*/commit-*")]:
        envelope = json.loads(path.read_bytes())
        assert seal(path, envelope["body"], envelope["place"], run)
    return True


def complaints_of_store(store: Path) -> list[str]:
    """Fetch it, look at what came, go on with it."""
    url, copy = f"file://{store}", store.parent / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    found = [complaint("fetch", url, copy)]
    if {path: path.read_bytes() for path in store.rglob("*") if path.is_file()} != before:
        found.append("fetch: it changed the store")
    if (copy / "config.json").exists():
        found += complaints(copy, VERBS[:5])
        found += complaints(copy, [(*VERBS[8], "--publish", url)])
    return [wrong for wrong in found if wrong is not None]
