"""The fingerprint changes with what code does, and with nothing else."""

import shutil

import pytest

from turnout.reproduce import source
from turnout.reproduce.grid import cells
from turnout.reproduce.item import read_item

TEXT = """
[item]
title = "a title"
[run]
rounds = 2
[data]
partition = { name = "iid", clients = 6 }
[[algorithm]]
name = "fedavg"
[[algorithm]]
name = "safari"
[[algorithm]]
name = "amplified"
label = "amplified"
inner = { name = "mifa" }
"""


@pytest.fixture
def code(tmp_path, monkeypatch):
    """A copy of turnout's source, read in place of it."""
    copy = tmp_path / "turnout"
    shutil.copytree(source.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(source, "PACKAGE", copy)
    monkeypatch.setattr(source.algorithms, "__file__", str(copy / "algorithms" / "__init__.py"))
    monkeypatch.setattr(
        source, "getsourcefile", lambda made: str(copy / "algorithms" / f"{made.__name__}.py")
    )

    def fingerprints():
        for each in (source._of, source._tree, source._meaning):
            each.cache_clear()
        chosen = cells(read_item("safari", "mine", TEXT), "paper")
        return {cell.point["method"]: source.fingerprint(cell) for cell in chosen}

    def changed(name, before, after):
        """Which methods' fingerprints a change changes."""
        file, was = copy / name, fingerprints()
        text = file.read_text(encoding="utf-8")
        assert before in text
        file.write_text(text.replace(before, after, 1), encoding="utf-8")
        now = fingerprints()
        return {method for method in was if was[method] != now[method]}

    yield changed
    for each in (source._of, source._tree, source._meaning):
        each.cache_clear()


ALL = {"fedavg", "safari", "amplified"}


@pytest.mark.parametrize(
    ("name", "before", "after", "changes"),
    [
        ("draws.py", "import numpy as np", "import numpy as np  # a comment", set()),
        ("draws.py", '"""', '"""Another docstring. ', set()),
        ("draws.py", "import numpy as np", "import numpy as np\nimport torch", ALL),
        ("parts/local.py", "from ", "import torch\nfrom ", ALL),
        ("participation/bernoulli.py", "from ", "import torch\nfrom ", ALL),
        ("audit/__init__.py", '"""', '"""Another. """\nimport torch\n"""', set()),
        ("reproduce/report.py", "import io", "import io, os", set()),
        ("algorithms/known.py", "from ", "import torch\nfrom ", set()),
        ("algorithms/mifa.py", "from ", "import torch\nfrom ", {"amplified"}),
        ("algorithms/safari.py", "from ", "import torch\nfrom ", {"safari"}),
        # safari and amplified are made of fedavg's recipe.
        ("algorithms/fedavg.py", "from turnout", "import torch\nfrom turnout", ALL),
    ],
)
def test_it_changes_with_what_decides(code, name, before, after, changes) -> None:
    assert code(name, before, after) == changes


def test_methods_differ() -> None:
    found = {source.fingerprint(cell) for cell in cells(read_item("safari", "m", TEXT), "paper")}
    assert len(found) == 3


def test_everything_that_decides_is_there() -> None:
    for name in source.DECISIVE:
        assert source._files(source.PACKAGE / name)
        assert all(file.is_file() for file in source._files(source.PACKAGE / name))
