"""The architecture is a test: every rule holds, and every checker catches a planted violation."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests import architecture
from tests.architecture import Sources

ROOT = Path(__file__).resolve().parents[1]
TOP = [p.name for p in ROOT.iterdir() if p.is_dir() and not p.name.startswith(".")]
NOT_OURS = {"runs", "dist", "build", "shared", "__pycache__"}


def read_sources() -> Sources:
    paths = [p for top in TOP if top not in NOT_OURS for p in (ROOT / top).rglob("*.py")]
    return Sources({p.relative_to(ROOT).as_posix(): p.read_text("utf-8") for p in sorted(paths)})


SOURCES = read_sources()


def declared() -> set[str]:
    """Import names of the dependencies in pyproject.toml, hard and optional."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [need for needs in project.get("optional-dependencies", {}).values() for need in needs]
    names = {re.split(r"[\[<>=!~; ]", need)[0] for need in project["dependencies"] + extras}
    return {{"scikit-learn": "sklearn"}.get(name, name.replace("-", "_")) for name in names}


def walls(sources: Sources) -> list[str]:
    return architecture.walls(sources, declared())


def test_sources_are_found() -> None:
    assert {"algocapture/rng.py", "algocapture/tasks/base.py"} <= set(SOURCES.files)
    assert "tests/test_architecture.py" in SOURCES.files


NESTED = """
def f(x):
    for a in x:
        while a:
            if a:
                with a:
                    pass
"""
LADDER = """
def f(x):
    for a in x:
        if a == 1:
            while a:
                a = 0
        elif a == 2:
            while a:
                a = 0
        elif a == 3:
            while a:
                a = 0
        else:
            a = 0
"""
LONG = "def f():\n" + "    x = 1\n" * 60

# What a planted file closes to a ring, or does not.
RING = {
    "algocapture/config.py": "from algocapture.rng import Seed",
    "algocapture/store/files.py": "x = 1",
}

# checker, a file, what it holds, a part of the violation (empty: this one is allowed)
PLANTED = [
    ("directions", "algocapture/tasks/x.py", "from algocapture.models import Y", "tasks may not"),
    ("directions", "algocapture/models/x.py", "import algocapture.tasks.base", "models may not"),
    ("directions", "algocapture/config.py", "from algocapture.rng import Seed", "config may not"),
    ("directions", "algocapture/stats/x.py", "from algocapture import types", "stats may not"),
    ("directions", "algocapture/store/x.py", "from ..stats import judge", "store may not"),
    ("directions", "algocapture/report/x.py", "from ..stats import judge", ""),
    ("directions", "algocapture/experiment.py", "from algocapture.recipes import q", "may not"),
    ("directions", "algocapture/types.py", "def f():\n    import algocapture.cli", "may not"),
    ("directions", "algocapture/news/x.py", "", "no line in MAY_IMPORT"),
    ("directions", "algocapture/learners/x.py", "from algocapture.tasks.base import Task", ""),
    ("walls", "algocapture/stats/x.py", "import torch", "may import only"),
    ("walls", "algocapture/rng.py", "from torch import Tensor", "may import only"),
    ("walls", "algocapture/tasks/x.py", "from matplotlib import pyplot", "matplotlib only in"),
    ("walls", "algocapture/protocol/x.py", "import rich.console", "rich only in"),
    ("walls", "algocapture/launch/inline.py", "import ray", "ray only in"),
    ("walls", "algocapture/models/x.py", "import numba", "numba only in"),
    ("walls", "algocapture/models/x.py", "import einops", "not declared"),
    ("walls", "algocapture/tasks/x.py", "import numba, torch, scipy.sparse, math", ""),
    ("hidden_imports", "algocapture/tasks/x.py", "def f():\n    import math", "inside f()"),
    ("hidden_imports", "algocapture/cli/x.py", "def f():\n    import math", ""),
    ("cycles", "algocapture/rng.py", "from algocapture.config import x", "import cycle"),
    ("cycles", "algocapture/store/__init__.py", "from algocapture.store import files", ""),
    ("seeding", "algocapture/tasks/x.py", "import torch\ntorch.manual_seed(0)", "seeds a global"),
    ("seeding", "tests/test_x.py", "np.random.seed(0)", "seeds a global"),
    ("seeding", "algocapture/tasks/x.py", "torch.rand(3)", "without generator="),
    ("seeding", "algocapture/tasks/x.py", "torch.randn_like(x)", "without generator="),
    ("seeding", "algocapture/tasks/x.py", "torch.empty(3).normal_()", "without generator="),
    ("seeding", "algocapture/tasks/x.py", "np.random.rand(3)", "numpy's global"),
    ("seeding", "algocapture/tasks/x.py", "random.choice(x)", "global generator"),
    ("seeding", "algocapture/tasks/x.py", "torch.rand(3, generator=g)\ng.manual_seed(1)", ""),
    ("sizes", "tests/test_x.py", "x = 1\n" * 401, "401 lines"),
    ("sizes", "tests/test_x.py", "x = 1\n" * 400, ""),
    ("sizes", "algocapture/tasks/x.py", LONG, "has 61 lines"),
    ("sizes", "algocapture/tasks/x.py", NESTED, "nests 4 blocks"),
    ("sizes", "algocapture/tasks/x.py", LADDER, ""),
    ("inits", "algocapture/tasks/__init__.py", "def f(): pass", "only re-exports"),
    ("inits", "algocapture/tasks/__init__.py", "TABLE = {}", "only re-exports"),
    ("inits", "algocapture/__init__.py", '"""Doc."""\n__version__ = "1"', ""),
]
CHECKERS = {name: getattr(architecture, name) for name in {row[0] for row in PLANTED}}
CHECKERS["walls"] = walls


@pytest.mark.parametrize("checker", sorted(CHECKERS))
def test_rule_holds(checker: str) -> None:
    assert CHECKERS[checker](SOURCES) == []


@pytest.mark.parametrize(("checker", "path", "text", "violation"), PLANTED)
def test_checker_catches(checker: str, path: str, text: str, violation: str) -> None:
    found = CHECKERS[checker](Sources(RING | {path: text} if checker == "cycles" else {path: text}))
    if violation:
        assert any(violation in line for line in found), found
    else:
        assert found == []


# --- README's map


def mapped(readme: str) -> dict[str, str]:
    """Path -> its line, of the tree in the block below '## Map'."""
    block = readme.split("## Map")[1].split("```")[1]
    entries, above = {}, ""
    for line in filter(str.strip, block.splitlines()):
        name = line.split()[0]
        if not line.startswith(" "):
            above = name
        path = name if name == above else above + name
        assert path not in entries, f"the map names {path} twice"
        entries[path] = line
    return entries


def existing(sources: Sources) -> set[str]:
    """What the map must name: top folders, and the parts of the package."""
    folders = {p.name + "/" for p in ROOT.iterdir() if is_ours(p)}
    parts = {p.removeprefix("algocapture/") for p in sources.files if p.startswith("algocapture/")}
    parts = {p.split("/")[0] + "/" * ("/" in p) for p in parts if not p.startswith("__")}
    return folders | {f"algocapture/{part}" for part in parts}


def is_ours(path: Path) -> bool:
    ours = path.is_dir() and not path.name.startswith(".") and path.name not in NOT_OURS
    return ours and any(p.suffix in (".py", ".md") for p in path.rglob("*.*"))


def test_map_names_what_exists() -> None:
    entries = mapped((ROOT / "README.md").read_text("utf-8"))
    assert set(entries) == existing(SOURCES)
    assert all(len(line.split()) > 2 for line in entries.values() if line.startswith(" "))


def test_map_is_read() -> None:
    tree = "## Map\n```\nalgocapture/\n  a.py  one thing\n  b/    another\ntests/  here\n```\n"
    with pytest.raises(AssertionError, match="tests/ twice"):
        mapped(tree.replace("  a.py", "tests/ once\n  a.py"))
    assert list(mapped(tree)) == ["algocapture/", "algocapture/a.py", "algocapture/b/", "tests/"]


# --- start-up

HEAVY = {"torch", "scipy", "matplotlib", "numba", "pandas", "rich"}


def modules_after(code: str) -> set[str]:
    report = f"import sys\n{code}\nprint('LOADED', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", report], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {name.split(".")[0] for name in done.stdout.split("LOADED")[1].split()}


HELP = "from algocapture.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass"


@pytest.mark.parametrize("code", ["import algocapture", HELP])
def test_starts_without(code: str) -> None:
    assert not modules_after(code) & HEAVY
    assert "torch" in modules_after("import algocapture.types")  # the probe sees what is there


def seconds(*arguments: str) -> float:
    """Processor time of a child: on an idle machine the time to wait, whatever else runs."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_is_instant() -> None:
    """Minimum of 5 to 40 interleaved runs; the bar is 3 times a bare interpreter and 100 ms."""
    bare = ours = float("inf")
    for run in range(40):
        bare = min(bare, seconds("-c", "pass"))
        ours = min(ours, seconds("-m", "algocapture", "--help"))
        if run >= 4 and ours <= 3 * bare + 0.1:
            return
    raise AssertionError(f"--help took {ours:.3f} s, a bare interpreter {bare:.3f} s")
