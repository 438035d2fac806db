"""The page of reproductions: every item has a place, and its tables are what the command wrote."""

import csv
import importlib.util
from collections import Counter

import pytest
from tests.docs.pages import DOCS

from turnout.reproduce.item import SCALES, catalogue

_spec = importlib.util.spec_from_file_location("reproduction", DOCS / "reproduction.py")
assert _spec is not None
assert _spec.loader is not None
tool = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tool)

PAGES = [page.read_text(encoding="utf-8") for page in tool.PAGES]
BLOCKS = {
    match.group("paper", "item", "scale"): match["body"]
    for page in PAGES
    for match in tool.BLOCK.finditer(page)
}
KINDS = ("matches", "same order", "differs")


def test_every_item_has_one_place() -> None:
    places = Counter((paper, item) for paper, item, _ in BLOCKS)
    assert places == Counter((p, item) for p, known in catalogue().items() for item in known)
    assert {scale for *_, scale in BLOCKS} <= set(SCALES)


@pytest.mark.parametrize("place", BLOCKS, ids=" ".join)
def test_what_was_run_is_what_stands_there(place) -> None:
    paper, item, scale = place
    body, command = BLOCKS[place], f"turnout reproduce {paper} {item} --scale {scale}"
    assert command in body
    table = DOCS / "reproduction" / paper / f"{item}-{scale}.csv"
    assert table.exists() != (tool.NOT_RUN in body)
    if tool.NOT_RUN in body:
        return
    with open(table, encoding="utf-8", newline="") as file:
        verdicts = Counter(row.get("verdict", "") for row in csv.DictReader(file))
    if any(verdicts[kind] for kind in KINDS):
        text = ", ".join(
            f"{verdicts[k]} {k} ({mark})" for k, mark in zip(KINDS, "=~≠", strict=True)
        )
        assert f"of {sum(verdicts[kind] for kind in KINDS)}: {text}" in body


def test_the_overview_is_of_the_blocks() -> None:
    for page in PAGES:
        assert tool.update(page, DOCS / "nowhere", DOCS / "nowhere") == page


def test_results_find_their_place(tmp_path) -> None:
    folder = tmp_path / "runs" / "safari"
    folder.mkdir(parents=True)
    (folder / "table-9-paper.md").write_text(
        "## safari table-9: A title: with more\n\nVerdicts of 2: 1 matches (=), 0 same order (~), "
        "1 differs (≠).\n\n![A title](table-9-paper.svg)\n\n2 cells, 3.5 minutes of one process in all\n"
    )
    for end in (".csv", ".svg", "-cells.csv"):
        (folder / f"table-9-paper{end}").write_text("a,b\n")
    begin, end = "<!-- results: safari table-", "\n<!-- end of results -->"
    page = f"{begin}9 paper -->{end}\nby hand\n{begin}4 paper -->{end}\n"
    page = f"<!-- overview -->\nold\n<!-- end of overview -->\n{page}"
    found = tool.update(page, tmp_path / "runs", tmp_path / "docs" / "evidence")
    assert "### safari table-9\n\n**A title: with more**" in found
    assert "![A title](evidence/safari/table-9-paper.svg)" in found
    assert "[CSV](evidence/safari/table-9-paper.csv)" in found
    assert "\nby hand\n" in found
    assert "| [safari table-9](#safari-table-9) | paper | 2 | 1 | 0 | 1 | 3.5 |" in found
    assert "Not run yet: `turnout reproduce safari table-4 --scale paper`." in found
    assert "old" not in found
    assert len(list((tmp_path / "docs" / "evidence" / "safari").iterdir())) == 3
    # What is no longer in the folder of results stays.
    assert tool.update(found, tmp_path / "empty", tmp_path / "docs" / "evidence") == found
