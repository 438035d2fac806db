"""Every block of Python in the documentation runs, and prints what the page says."""

import contextlib
import io
import re
from pathlib import Path

import pytest
import torch
from tests.docs.pages import DOCS, Snippet, pages, snippets

from turnout.algorithms import RECIPES

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
WITH_CODE = [page for page in pages() if snippets(page.read_text())]


@pytest.fixture(autouse=True)
def _as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Files go to a folder of their own; recipes that a page registers go with the page."""
    monkeypatch.chdir(tmp_path)
    recipes, threads = dict(RECIPES), torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    RECIPES.clear()
    RECIPES.update(recipes)


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_runs_from_top_to_bottom_and_prints_what_it_says(page: Path) -> None:
    names: dict[str, object] = {"__name__": "__page__"}
    for snippet in snippets(page.read_text()):
        printed = io.StringIO()
        # Blank lines in front make tracebacks name the line of the page.
        code = "\n" * (snippet.line - 1) + snippet.code
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), names)
        if snippet.prints is not None:
            assert_alike(printed.getvalue(), snippet.prints)
        else:
            assert printed.getvalue() == "", f"line {snippet.line} prints what is not shown"


def assert_alike(printed: str, shown: str) -> None:
    """The same words, and the same numbers but for another machine's arithmetic."""
    assert words(printed) == words(shown), f"it prints:\n{printed}"
    found, told = numbers(printed), numbers(shown)
    assert found == pytest.approx(told, abs=0.02, rel=0.02), f"it prints:\n{printed}"


def words(text: str) -> str:
    return " ".join(NUMBER.sub("#", text).split())


def numbers(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text)]


def test_the_check_itself_notices_other_words_and_other_numbers() -> None:
    assert_alike("weights [1.  2.501]\n", "weights [1. 2.5]")
    for wrong in ("weights [1. 2.8]", "weight [1. 2.5]", "weights [1. 2.5 3.]"):
        with pytest.raises(AssertionError):
            assert_alike(wrong, "weights [1. 2.5]")


def test_blocks_are_found_with_the_output_that_follows() -> None:
    page = 'Text\n\n```python\nprint(1)\n```\n\n```text title="Output"\n1\n```\n\n```toml\na = 1\n```\n'
    assert snippets(page) == [Snippet(4, "print(1)\n", "1\n")]
