"""The rules of the house as functions from source files to violations, for test_architecture.py.

Every checker takes `Sources`, so that a test can plant a violation and see it caught.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property

BASE = {"rng", "ledger", "config", "elsewhere"}
NOUNS = BASE | {"types", "allocator"}
OUTPUT = {"stats", "store", "launch", "report"}

# Part -> the parts that it may import (itself always). The directions of DESIGN's house, with two
# additions: learners see the Task interface; studies measure whatever there is below them.
MAY_IMPORT: dict[str, set[str]] = {
    "rng": set(),
    "ledger": set(),
    "config": set(),
    "elsewhere": set(),
    "allocator": set(),
    "types": BASE,
    "tasks": NOUNS,
    "models": NOUNS,
    "kernels": NOUNS,
    "stats": BASE,
    "store": BASE,
    "launch": BASE,
    "report": BASE | {"stats", "store"},
    "learners": NOUNS | {"models", "kernels", "tasks"},
    "protocol": NOUNS | {"tasks", "learners", "stats"},
    "complexity": NOUNS | {"tasks", "models", "kernels", "stats"},
    "studies": NOUNS | {"tasks", "models", "kernels", "learners", "stats", "complexity"},
    "experiment": NOUNS
    | OUTPUT
    | {"tasks", "models", "learners", "complexity", "protocol", "studies"},
}
EVERYTHING = set(MAY_IMPORT) | {"recipes"}
MAY_IMPORT["recipes"] = set(MAY_IMPORT)
MAY_IMPORT["cli"] = EVERYTHING
MAY_IMPORT["__init__"] = set()
MAY_IMPORT["__main__"] = {"cli"}

# Third-party package -> where alone it may be imported (prefixes of paths below algocapture/).
WALLS: dict[str, tuple[str, ...]] = {
    "ray": ("launch/ray.py",),
    "fsspec": ("store/publish.py",),
    "matplotlib": ("report/",),
    "jinja2": ("report/",),
    "click": ("cli/",),
    "rich": ("cli/",),
    "numba": ("tasks/", "complexity/"),
    "safetensors": ("store/",),
}
# Part -> all the third-party packages that it may import. These parts start without torch.
LIGHT: dict[str, set[str]] = {
    "__init__": set(),
    "__main__": set(),
    "rng": {"numpy"},
    "ledger": {"numpy"},
    "config": {"numpy"},
    "stats": {"numpy", "scipy"},
    "store": {"numpy", "safetensors", "fsspec"},
    "launch": {"numpy", "ray"},
    "report": {"numpy", "matplotlib", "jinja2"},
}
# The one context manager that seeds, forks and restores global generators for user modules.
MAY_SEED = {"algocapture/learners/isolation.py"}

LINES_PER_FILE, LINES_PER_FUNCTION, NESTING = 400, 60, 3

GLOBAL_SEEDING = {
    "torch.manual_seed",
    "torch.seed",
    "torch.random.manual_seed",
    "torch.random.seed",
    "torch.cuda.manual_seed",
    "torch.cuda.manual_seed_all",
    "torch.set_rng_state",
    "np.random.seed",
    "numpy.random.seed",
    "random.seed",
}
TORCH_DRAWS = {"rand", "randn", "randint", "randperm", "bernoulli", "multinomial", "normal"} | {
    "poisson"
}
TENSOR_DRAWS = {"normal_", "uniform_", "random_", "bernoulli_", "exponential_", "geometric_"}
NUMPY_OBJECTS = {"Generator", "PCG64", "SeedSequence", "BitGenerator", "default_rng"}

Function = ast.FunctionDef | ast.AsyncFunctionDef
BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match, ast.AsyncFor, ast.AsyncWith)


@dataclass(frozen=True)
class Sources:
    """Path below the repository's root -> text."""

    files: dict[str, str] = field(default_factory=dict)

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        return {path: ast.parse(text, path) for path, text in self.files.items()}

    @property
    def package(self) -> dict[str, ast.Module]:
        """The trees of the library alone, by path below algocapture/."""
        return {
            path.removeprefix("algocapture/"): tree
            for path, tree in self.trees.items()
            if path.startswith("algocapture/")
        }


@dataclass(frozen=True)
class Imported:
    module: str  # absolute dotted name
    line: int
    names: tuple[str, ...] = ()  # of `from module import names`


def imports(path: str, tree: ast.Module) -> Iterator[Imported]:
    """Every import anywhere in a file of the package, relative ones resolved."""
    package = ["algocapture", *path.split("/")[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Imported(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            if module == "algocapture":  # from algocapture import rng
                yield from (Imported(f"{module}.{a.name}", node.lineno) for a in node.names)
            else:
                yield Imported(module, node.lineno, tuple(a.name for a in node.names))


def part_of(path: str) -> str:
    return path.split("/")[0].removesuffix(".py")


def directions(sources: Sources) -> list[str]:
    found = []
    for path, tree in sources.package.items():
        part = part_of(path)
        if part not in MAY_IMPORT:
            found.append(f"{path}: {part!r} has no line in MAY_IMPORT")
            continue
        for one in imports(path, tree):
            names = one.module.split(".")
            inside = names[0] == "algocapture" and len(names) > 1
            if inside and names[1] != part and names[1] not in MAY_IMPORT[part]:
                found.append(f"{path}:{one.line}: {part} may not import {names[1]}")
    return found


def walls(sources: Sources, declared: set[str]) -> list[str]:
    """Third-party imports outside their walls, in parts that are light, or not declared."""
    found = []
    for path, tree in sources.package.items():
        for one in imports(path, tree):
            name = one.module.split(".")[0]
            if name == "algocapture" or name in sys.stdlib_module_names:
                continue
            where, part = f"{path}:{one.line}", part_of(path)
            if name in WALLS and not path.startswith(WALLS[name]):
                found.append(f"{where}: {name} only in {', '.join(WALLS[name])}")
            if part in LIGHT and name not in LIGHT[part]:
                found.append(f"{where}: {part} may import only {sorted(LIGHT[part])}, not {name}")
            if name not in declared:
                found.append(f"{where}: {name} is not declared in pyproject.toml")
    return found


def hidden_imports(sources: Sources) -> list[str]:
    """Imports inside functions, which only the command line may have (its verbs load lazily)."""
    return [
        f"{path}:{node.lineno}: an import inside {function.name}()"
        for path, tree in sources.package.items()
        for function in functions(tree)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom) and part_of(path) != "cli"
    ]


def cycles(sources: Sources) -> list[str]:
    """Files that import one another, directly or in a ring. Type-checking imports count."""
    known = {module_name(path): path for path in sources.package}
    graph = {
        name: {m for one in imports(path, sources.package[path]) for m in files_of(one, known)}
        for name, path in known.items()
    }
    while True:  # peel off whatever imports nothing that is left: a ring stays
        leaves = [name for name, needs in graph.items() if not needs & graph.keys()]
        if not leaves:
            return [f"{name} lies on or behind an import cycle" for name in sorted(graph)]
        for name in leaves:
            del graph[name]


def files_of(one: Imported, known: Collection[str]) -> set[str]:
    """The files that an import names: of `from package import file`, the file."""
    files = {f"{one.module}.{name}" for name in one.names} & set(known)
    whole = not one.names or len(files) < len(one.names)
    return files | ({one.module} & set(known) if whole else set())


def module_name(path: str) -> str:
    return "algocapture." + path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def seeding(sources: Sources) -> list[str]:
    """Global seeds anywhere; in the library also draws from a global generator."""
    found = []
    for path, tree in sources.trees.items():
        if path in MAY_SEED:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                found += [f"{path}:{node.lineno}: {why}" for why in draws(node, path)]
    return found


def draws(call: ast.Call, path: str) -> Iterator[str]:
    name = dotted(call.func)
    if name in GLOBAL_SEEDING:
        yield f"{name} seeds a global generator"
    if not path.startswith("algocapture/"):
        return
    head, _, last = name.rpartition(".")
    explicit = any(k.arg == "generator" for k in call.keywords)
    if head in ("np.random", "numpy.random") and last not in NUMPY_OBJECTS:
        yield f"{name} draws from numpy's global generator"
    if head == "random":
        yield f"{name} draws from a global generator"
    if head == "torch" and (last in TORCH_DRAWS or last in {f"{d}_like" for d in TORCH_DRAWS}):
        if not explicit:
            yield f"{name} without generator="
    elif last in TENSOR_DRAWS and not explicit:
        yield f".{last} without generator="


def dotted(node: ast.expr) -> str:
    """a.b.c of an attribute chain; what is no name is an empty string."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def sizes(sources: Sources) -> list[str]:
    found = []
    for path, text in sources.files.items():
        lines = text.count("\n")
        if lines > LINES_PER_FILE:
            found.append(f"{path}: {lines} lines, at most {LINES_PER_FILE}")
        for function in functions(sources.trees[path]):
            where = f"{path}:{function.lineno}: {function.name}()"
            length = (function.end_lineno or 0) - function.lineno + 1
            if length > LINES_PER_FUNCTION:
                found.append(f"{where} has {length} lines, at most {LINES_PER_FUNCTION}")
            if (depth := nesting(function)) > NESTING:
                found.append(f"{where} nests {depth} blocks, at most {NESTING}")
    return found


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def nesting(function: Function) -> int:
    """Blocks (if, for, while, with, try, match) around the deepest statement of a function.

    An `elif` is as deep as its `if`; a nested function is measured by itself.
    """

    def depth(node: ast.AST, inherited: int) -> int:
        deepest = inherited
        for child in ast.iter_child_nodes(node):
            if isinstance(child, Function | ast.ClassDef):
                continue
            elif_ = isinstance(node, ast.If) and [child] == node.orelse
            deeper = isinstance(child, BLOCKS) and not (elif_ and isinstance(child, ast.If))
            deepest = max(deepest, depth(child, inherited + deeper))
        return deepest

    return depth(function, 0)


def inits(sources: Sources) -> list[str]:
    """`__init__` files hold a docstring, imports, `__all__` and the version: nothing else."""
    found = []
    for path, tree in sources.package.items():
        if path.split("/")[-1] != "__init__.py":
            continue
        for node in _outside(tree):
            docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            names = {t.id for t in getattr(node, "targets", []) if isinstance(t, ast.Name)}
            listing = bool(names) and names <= {"__all__", "__version__"}
            if not (docstring or listing or isinstance(node, ast.Import | ast.ImportFrom)):
                found.append(f"{path}:{node.lineno}: an __init__ only re-exports")
    return found


def _outside(tree: ast.Module) -> list[ast.stmt]:
    """A file's statements, with those of `with elsewhere():` as if it were not there."""
    plain: list[ast.stmt] = []
    for node in tree.body:
        apart = isinstance(node, ast.With) and ast.unparse(node.items[0]) == "elsewhere()"
        plain += node.body if isinstance(node, ast.With) and apart else [node]
    return plain
