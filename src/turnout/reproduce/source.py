"""Which code made a record: a fingerprint of the source that decides what comes out of a cell."""

import ast
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from inspect import getsourcefile, unwrap
from pathlib import Path

from turnout import algorithms
from turnout.experiments.config import AlgorithmSection
from turnout.experiments.methods import recipe
from turnout.reproduce.grid import Cell

PACKAGE = Path(__file__).parents[1]
DECISIVE = (
    "algorithm.py", "draws.py", "evaluate.py", "flat.py", "round.py", "simulator.py",
    "together.py", "world.py",
    "data", "engine", "models", "participation", "parts",
    "experiments/methods.py", "experiments/world.py", "reproduce/play.py",
)  # fmt: skip
"""Of the package. What reads files, lays out tables or draws changes no result; and of the
algorithms only those count that a cell uses, so that a method may be added without playing the
others again."""


def fingerprint(cell: Cell) -> str:
    """The same for code that does the same: comments, docstrings and layout do not count."""
    before = () if cell.after is None else cell.after.config.algorithm
    names = sorted({name for each in (*cell.config.algorithm, *before) for name in _recipes(each)})
    return _of(tuple(names))


def _recipes(section: AlgorithmSection) -> Iterator[str]:
    yield section.name
    if section.inner is not None:
        yield from _recipes(section.inner)


@cache
def _of(recipes: tuple[str, ...]) -> str:
    files = [file for name in DECISIVE for file in _files(PACKAGE / name)]
    digest = blake2b(digest_size=8)
    for file in [*files, *_methods(recipes)]:
        digest.update(f"{file.name}\n{_meaning(file)}\n".encode())
    return digest.hexdigest()


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _methods(recipes: tuple[str, ...]) -> list[Path]:
    """Where these methods stand, and the methods that those are made of."""
    folder = Path(algorithms.__file__).parent
    wanted = [Path(getsourcefile(unwrap(recipe("algorithm", name))) or "") for name in recipes]
    found: list[Path] = []
    while wanted:
        file = wanted.pop()
        if file in found or not file.is_file():
            continue
        found.append(file)
        for node in ast.walk(_tree(file)):
            if isinstance(node, ast.ImportFrom) and node.module:
                package, _, name = node.module.rpartition(".")
                if package == algorithms.__name__:
                    wanted.append(folder / f"{name}.py")
    return sorted(found)


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def _meaning(file: Path) -> str:
    """The file without comments, docstrings and layout."""
    tree = _tree(file)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not _is_text(each)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
