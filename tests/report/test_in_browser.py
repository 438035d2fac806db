"""Reports in a browser: nothing is missing or fetched, toggles work, and a large one opens at once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser import CHROMIUM, Browser, browser
from tests.report.large import METHODS, large

from turnout.report.comparison import write_report

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")

SCHEME = "getComputedStyle(document.body).backgroundColor"
SHOWN = "[...document.querySelectorAll('.series-3')].map(drawn => getComputedStyle(drawn).display)"
READ = "document.querySelector('.reader ul').innerText"
UNNAMED = """[...document.querySelectorAll('svg[role=img], input, button, [role=region]')]
    .filter(each => !(each.textContent.trim() || each.getAttribute('aria-label')
        || each.getAttribute('aria-labelledby') || (each.labels && each.labels.length)))
    .map(each => each.outerHTML.slice(0, 80))"""
SECONDS = 2


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """250 clients, 10 000 rounds, 7 methods."""
    return write_report([large(tmp_path_factory.mktemp("runs") / "large")])


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(str(tmp_path_factory.mktemp("profile"))) as opened:
        yield opened


def scheme(tab: Browser, name: str) -> None:
    media = [{"name": "prefers-color-scheme", "value": name}]
    tab.call("Emulation.setEmulatedMedia", features=media)


def test_a_large_report_is_small_and_opens_in_under_two_seconds(tab: Browser, page: Path) -> None:
    assert page.stat().st_size < 6_000_000
    tab.width(1280, phone=False)
    # All processor time of the page's process, so that whoever else uses the machine does not count.
    tab.call("Performance.enable", timeDomain="threadTicks")
    tab.open(page.as_uri())
    tab.ask("document.body.getBoundingClientRect().height")  # laid out
    took = {each["name"]: each["value"] for each in tab.call("Performance.getMetrics")["metrics"]}
    assert 0 < took["TaskDuration"] < took["ProcessTime"] < SECONDS


def test_a_toggle_hides_its_method_in_every_figure_and_brings_it_back(
    tab: Browser, page: Path
) -> None:
    tab.width(1280, phone=False)
    tab.faults.clear()
    tab.open(page.as_uri())
    assert set(tab.ask(SHOWN)) == {"inline"}
    assert len(tab.ask(SHOWN)) > 6
    assert "FedAU" in tab.ask(READ)
    tab.ask("document.querySelector('[data-toggles=\"3\"]').click()")
    assert set(tab.ask(SHOWN)) == {"none"}
    assert "FedAU" not in tab.ask(READ)
    assert "known p" in tab.ask(READ)
    tab.ask("document.querySelector('[data-all]').click()")
    assert tab.ask(READ) == ""
    tab.ask("document.querySelector('[data-all]').click()")
    assert set(tab.ask(SHOWN)) == {"inline"}
    assert tab.faults == []


def test_the_slider_reads_the_lines_at_its_place(tab: Browser, page: Path) -> None:
    tab.width(1280, phone=False)
    tab.open(page.as_uri())
    last = tab.ask(READ)
    assert "SCAFFOLD 8" in last
    tab.ask(
        "(() => { const slider = document.querySelector('.reader input'); slider.value = 0;"
        "slider.dispatchEvent(new Event('input')); })()"
    )
    assert tab.ask(READ) != last
    assert tab.ask("document.querySelectorAll('.reader li').length") >= len(METHODS)


def test_the_page_follows_the_readers_scheme_and_the_button_changes_it(
    tab: Browser, page: Path
) -> None:
    scheme(tab, "dark")
    tab.open(page.as_uri())
    dark = tab.ask(SCHEME)
    tab.ask("document.getElementById('scheme').click()")
    light = tab.ask(SCHEME)
    assert (dark, light) == ("rgb(21, 24, 28)", "rgb(255, 255, 255)")
    scheme(tab, "light")
    tab.open(page.as_uri())
    assert tab.ask(SCHEME) == light


@pytest.mark.parametrize("pixels", [360, 1280])
def test_nothing_fails_to_load_or_is_wider_than_the_screen(
    tab: Browser, page: Path, pixels: int
) -> None:
    tab.width(pixels, phone=pixels < 800)
    tab.faults.clear()
    tab.open(page.as_uri())
    assert tab.faults == []
    assert tab.ask("document.documentElement.scrollWidth") <= pixels
    assert tab.ask(UNNAMED) == [], "a screen-reader has a name for everything"


def test_on_paper_there_are_figures_and_no_controls(tab: Browser, page: Path) -> None:
    tab.call("Emulation.setEmulatedMedia", media="print", features=[])
    tab.open(page.as_uri())
    assert tab.ask("getComputedStyle(document.getElementById('scheme')).display") == "none"
    assert tab.ask("getComputedStyle(document.querySelector('.reader')).display") == "none"
    assert tab.ask("document.querySelector('figure').offsetHeight") > 100
    tab.call("Emulation.setEmulatedMedia", media="", features=[])
