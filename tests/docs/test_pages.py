"""The pages tell of everything there is, and of nothing that there is not."""

import re
from pathlib import Path

import pytest
from tests.docs.pages import DOCS, pages

import turnout
from turnout.algorithms import RECIPES
from turnout.data import DATASETS
from turnout.engine import ENGINES
from turnout.experiments.methods import Known, algorithm, methods
from turnout.experiments.read import configure, parse
from turnout.models import MODELS
from turnout.participation import PROCESSES

TOML = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXPERIMENTS = [
    pytest.param(text, id=f"{page.name}-{place}")
    for page in pages()
    for place, text in enumerate(TOML.findall(page.read_text()))
]


def read(page: str) -> str:
    return (DOCS / page).read_text()


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_every_method_is_in_the_tables_and_has_settings_on_a_page(name: str) -> None:
    assert f"`{name}" in read("methods/index.md")
    titles = {page: page.read_text().split("\n", 1)[0] for page in (DOCS / "methods").glob("*.md")}
    own = [page for page, title in titles.items() if f"`{name}`" in title]
    assert len(own) == 1, "the title of one page names it"
    text = own[0].read_text()
    for section in ("When to use", "Memory and privacy", "Settings", "Source"):
        assert f"\n## {section}" in text


@pytest.mark.parametrize("name", sorted(PROCESSES))
def test_every_process_has_its_place_and_its_picture(name: str) -> None:
    assert f"\n## {name}\n\n![" in read("participation.md")
    assert f"](pictures/{name}.svg)" in read("participation.md")


def test_every_picture_is_shown_and_every_shown_picture_is_there() -> None:
    shown = {
        (page.parent / target).resolve()
        for page in pages()
        for target in re.findall(r"\]\(([^)]*\.svg)\)", page.read_text())
    }
    assert [path for path in shown if not path.is_file()] == []
    assert {path.resolve() for path in (DOCS / "pictures").glob("*.svg")} <= shown


@pytest.mark.parametrize(
    ("page", "names"),
    [("data.md", DATASETS), ("data.md", MODELS), ("performance.md", ENGINES)],
    ids=["data sets", "models", "engines"],
)
def test_every_name_is_told(page: str, names: dict[str, object]) -> None:
    assert [name for name in names if f"`{name}`" not in read(page)] == []


def test_the_reference_names_all_that_can_be_imported_from_turnout() -> None:
    assert [
        name for name in turnout.__all__ if f"[`{name}`]" not in read("reference/index.md")
    ] == []


@pytest.mark.parametrize("text", EXPERIMENTS)
def test_experiment_files_on_pages_are_valid(text: str, tmp_path: Path, monkeypatch) -> None:
    package = tmp_path / "mypackage"
    package.mkdir()
    (package / "methods.py").write_text("from turnout.algorithms import average_all as counted\n")
    monkeypatch.syspath_prepend(tmp_path)
    read_methods = methods(configure(parse(text)))
    assert [algorithm(method, Known()).name for method in read_methods.values()]
