"""`turnout reproduce` as it is typed."""

import pytest
import typer
from typer.testing import CliRunner

from turnout.errors import InputError
from turnout.reproduce.command import contents, reproduce
from turnout.reproduce.item import PAPERS, catalogue, find, read_item

app = typer.Typer()
app.command()(reproduce)


def said(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_the_list_names_all() -> None:
    listed = said("--list").output
    assert listed.strip() == contents().strip()
    assert listed.splitlines()[0] == PAPERS[0]
    for known in catalogue().values():
        assert all(f"  {name} " in listed for name in known)
    order = list(catalogue()["safari"])
    assert order.index("table-2-mnist") < order.index("table-10")


def test_a_table_and_its_files(tmp_path) -> None:
    done = said("safari", "table-1-mnist", "--scale", "smoke", "--out", tmp_path)
    assert done.exit_code == 0
    assert "s=4" in done.output
    assert "2/2" in done.output  # progress
    files = {path.name for path in (tmp_path / "safari").iterdir()}
    assert files == {f"table-1-mnist-smoke{end}" for end in (".md", ".csv", "-cells.csv", ".html")}
    assert len(list((tmp_path / "cells").glob("*.json"))) == 2
    again = said("safari", "table-1-mnist", "--scale", "smoke", "--out", tmp_path)
    assert "2/2" not in again.output  # nothing was left to do


def test_an_item_has_parts() -> None:
    assert [item.name for item in find("safari", "table-1")] == ["table-1-cifar10", "table-1-mnist"]
    shown = said("amplified", "panels", "--show").output
    assert shown.strip() == catalogue()["amplified"]["panels"].read_text(encoding="utf-8").strip()


def test_the_leaderboard_needs_no_item() -> None:
    shown = said("leaderboard", "--show").output
    for file in catalogue()["leaderboard"].values():
        assert file.read_text(encoding="utf-8").strip() in shown


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["safary", "table-1"], "paper 'safary'"),
        (["safari", "table-99"], "item 'table-99'"),
        (["safari"], "item is missing"),
        (["safari", "table-1", "--scale", "huge"], "scale 'huge'"),
        (["safari", "table-1", "--seeds", "0"], "seeds is 0"),
        (["safari", "table-1", "--jobs", "0"], "jobs is 0"),
    ],
)
def test_bad_input(arguments, field) -> None:
    error = said(*arguments).exception
    assert isinstance(error, InputError)
    assert str(error).startswith(field)


def test_a_table_of_a_file_that_nothing_reads() -> None:
    text = '[item]\ntitle = "t"\n[run]\nrounds = 1\n[printd]\n'
    with pytest.raises(InputError, match="printd"):
        read_item("safari", "mine", text)
