"""The results of studies in docs/results, made anew of their data: python docs/make_results.py

Every folder there that holds a result.json gets its tables, figures and page from these rows, the
same bytes each time. `python docs/make_results.py runs/table1` first takes that study's result in.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from algocapture.config import from_json
from algocapture.report.findings import write_findings
from algocapture.store import StoreError
from algocapture.store.files import read
from algocapture.store.records import decode_record
from algocapture.studies import Study

HERE = Path(__file__).parent / "results"
RESULT = "result.json"


def take(run: Path, folder: Path = HERE) -> Path:
    """Copy the result of a finished study; its place is named after its folder."""
    place = folder / run.name
    study_of(run / RESULT)
    place.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(run / RESULT, place / RESULT)
    return place


def study_of(path: Path) -> tuple[Study, dict[str, list[dict[str, object]]]]:
    """The study and its rows; a damaged file is a StoreError."""
    body = decode_record(read(path), path)["body"]
    study = from_json(body["identity"])
    if not isinstance(study, Study) or set(body.get("parts", {})) != set(study.parts()):
        raise StoreError(f"{path} is not the result of a finished study")
    return study, {name: body["parts"][name] for name in study.parts()}


def make(place: Path) -> list[Path]:
    study, rows = study_of(place / RESULT)
    return write_findings(study.findings(rows), place)


def main(runs: list[str]) -> None:
    for run in runs:
        take(Path(run))
    for path in sorted(HERE.glob(f"*/{RESULT}")):
        print(f"{path.parent}: {len(make(path.parent))} files")


if __name__ == "__main__":
    main(sys.argv[1:])
