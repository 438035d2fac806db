"""A page is one file that has everything in it, and says what it was given."""

import json
import re

import pytest

from turnout.experiments.style import figure, look, series, settings
from turnout.report.page import (
    Best,
    Bullets,
    Code,
    Fold,
    Page,
    Picture,
    Section,
    Table,
    Text,
    html,
)


def lines():
    """Two series on one plot, the second of which ends early."""
    with settings():
        drawn = figure(5, 3)
        axes = drawn.subplots()
        for place, (name, x) in enumerate({"one": [10, 20, 30], "two": [10, 20]}.items()):
            axes.plot(
                x, [k / 4 for k in x], label=name, gid=series(place), color=look(place).colour
            )
        axes.fill_between([10, 20], [1, 2], [3, 4], gid=series(0))
        axes.set_ylabel("accuracy (%)")
    return drawn


def page(*parts) -> Page:
    return Page("A <page>", "Its `lead`.", [Section("First & last", parts)], ("one", "two"))


def test_what_people_wrote_is_escaped() -> None:
    made = html(
        page(Text("a < b"), Bullets(["<script>"]), Code("x & y"), Fold("more", [Text("<i>")]))
    )
    assert "<title>A &lt;page&gt;</title>" in made
    assert '<h2 id="first-last-0">First &amp; last</h2>' in made
    for text in ("a &lt; b", "<li>&lt;script&gt;</li>", "x &amp; y", "<p>&lt;i&gt;</p>"):
        assert text in made
    assert "<code>lead</code>" in made


def test_a_page_names_no_other_place_but_the_names_of_xml() -> None:
    made = html(page(Picture(lines(), "Two lines.", read="round")))
    assert set(re.findall(r"https?://[^\"' )<]+", made)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert not re.findall(r"<(?:link|img|iframe|script) [^>]*(?:src|href)=\"(?!data:)", made)


def test_ids_differ_between_figures_and_each_reference_has_its_target() -> None:
    made = html(page(Picture(lines(), "One."), Picture(lines(), "The same again.")))
    ids = re.findall(r' id="([^"]+)"', made)
    assert len(ids) == len(set(ids))
    assert {*re.findall(r'(?:href="|url\()#([^")]+)', made), "content"} <= set(ids)


def test_series_are_classes_in_the_colours_of_the_page() -> None:
    made = html(page(Picture(lines(), "Two lines.")))
    assert made.count('class="series-0"') == 2, "the line and its band"
    assert made.count('class="series-1"') == 1
    drawn = made[made.index('<svg viewBox="0 0 360') :]
    assert "var(--series-0)" in drawn
    assert "currentColor" in drawn
    assert "#0072b2" not in drawn
    assert 'data-toggles="1"' in made


def test_the_reader_has_the_lines_values_and_nothing_where_a_line_has_ended() -> None:
    made = html(page(Picture(lines(), "Two lines.", read="round")))
    (text,) = re.findall(r'<script type="application/json">(.*?)</script>', made)
    data = json.loads(text)
    assert data["x"] == [10, 20, 30]
    assert data["series"] == [["0", "one", [2.5, 5.0, 7.5]], ["1", "two", [2.5, 5.0, None]]]
    assert data["unit"] == " %"
    # matplotlib leaves a margin of 5 % at each side of the data.
    assert data["across"] == pytest.approx([1 / 22, 0.5, 21 / 22], abs=1e-3)


def test_tables_have_heads_captions_and_bold_cells() -> None:
    rows = [["one", Best("84.1 ±0.4"), "yes"], ["other", "–", "no"]]
    made = html(page(Table("Who wins", ["method", "test %", "private?"], rows)))
    assert '<p class="caption" id="caption-1">Who wins</p>' in made
    assert '<td class="number"><strong>84.1 ±0.4</strong></td><td>yes</td>' in made
    assert '<th scope="col" class="number">test %</th><th scope="col">private?</th>' in made
    assert made.count('<th scope="row"><svg class="swatch"') == 1, "only a series has a swatch"


def test_words_in_figures_are_text_in_the_pages_type_wherever_they_are_drawn() -> None:
    made = html(page(Picture(lines(), "Two lines.")))
    drawn = made[made.index('<svg viewBox="0 0 360') :]
    assert re.search(r"<text[^>]*>accuracy \(%\)</text>", drawn)
    assert "font-family: var(--type)" in drawn
    assert "DejaVu Sans" not in drawn


def test_a_name_cannot_end_the_readers_data() -> None:
    drawn = lines()
    drawn.axes[0].lines[0].set_label("</script><b>")
    made = html(page(Picture(drawn, "Two lines.", read="round")))
    (text,) = re.findall(r'<script type="application/json">(.*?)</script>', made)
    assert json.loads(text)["series"][0][1] == "</script><b>"
