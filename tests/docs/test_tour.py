"""The notebook runs from top to bottom, says what it said, and shows its pictures."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.docs.pages import DOCS
from tests.docs.test_snippets import assert_alike

pytest.importorskip("nbclient", reason="there is no nbclient to play notebooks")
pytest.importorskip("ipykernel", reason="there is no ipykernel to play notebooks")

TOUR = DOCS.parent / "examples" / "tour.ipynb"
PLAY = "from nbclient.cli import NbClientApp; NbClientApp.launch_instance()"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The cells of the notebook, played now in a kernel of their own."""
    folder = tmp_path_factory.mktemp("tour")
    given = folder / "tour.ipynb"
    given.write_bytes(TOUR.read_bytes())
    command = [sys.executable, "-c", PLAY, "--inplace", "--timeout=300", given]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return code(given)


def code(notebook: Path) -> list[dict[str, Any]]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def said(cell: dict[str, Any]) -> str:
    """What a cell prints, and the text of what it ends with."""
    return "\n".join(
        "".join(out.get("text", out.get("data", {}).get("text/plain", [])))
        for out in cell["outputs"]
    )


def shown(cell: dict[str, Any]) -> list[list[str]]:
    """The kinds of what it shows."""
    return [sorted(out.get("data", {})) for out in cell["outputs"]]


def test_every_cell_says_what_the_kept_notebook_says(played: list[dict[str, Any]]) -> None:
    kept = code(TOUR)
    assert len(played) == len(kept) > 10
    for now, before in zip(played, kept, strict=True):
        assert_alike(said(now), said(before))
        assert shown(now) == shown(before)


@pytest.mark.parametrize(
    "heading", ["Quadratics", "Handwritten digits", "FedAU", "SAFARI"], ids=str.lower
)
def test_each_part_has_its_picture(heading: str) -> None:
    cells = json.loads(TOUR.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells]
    (begin,) = [
        k for k, text in enumerate(texts) if text.find(f". {heading}: ") > 0 and "## " in text
    ]
    parts = (
        k for k in range(begin + 1, len(cells)) if "\n## " in texts[k] or texts[k][:3] == "## "
    )
    pictures = [
        out
        for cell in cells[begin : next(parts, len(cells))]
        for out in cell.get("outputs", [])
        if "image/png" in out.get("data", {})
    ]
    assert pictures


def test_the_notebook_has_no_path_of_a_machine() -> None:
    text = TOUR.read_text(encoding="utf-8")
    assert "/home/" not in text
    assert str(DOCS.parent) not in text
