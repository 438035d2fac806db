"""The built documentation in a browser: from a server and from disk, wide and on a phone."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.browser import CHROMIUM, Browser, browser
from tests.docs.pages import DOCS

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"),
    pytest.mark.skipif(
        importlib.util.find_spec("material") is None or importlib.util.find_spec("mkdocs") is None,
        reason="the extra turnout[docs] is not installed",
    ),
]

DARK = "document.body.getAttribute('data-md-color-scheme')"
TOGGLE = "document.querySelector('form[data-md-component=palette] label:not([hidden])').click()"
BROKEN = "[...document.images].filter(i => !(i.complete && i.naturalWidth)).map(i => i.src)"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=DOCS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def served(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(str(tmp_path_factory.mktemp("profile"))) as opened:
        yield opened


def test_the_toggle_changes_the_scheme_and_nothing_fails_to_load(tab: Browser, served: str) -> None:
    tab.width(1280, phone=False)
    tab.faults.clear()
    tab.open(f"{served}/index.html")
    tab.until("getComputedStyle(document.querySelector('form[data-md-component=palette] label'))")
    for system, scheme in (("dark", "slate"), ("light", "default")):
        media = [{"name": "prefers-color-scheme", "value": system}]
        tab.call("Emulation.setEmulatedMedia", features=media)
        tab.until(f"{DARK} === '{scheme}'")  # it follows the reader's system …
    for scheme in ("default", "slate"):
        tab.ask(TOGGLE)
        tab.until(f"{DARK} === '{scheme}'")  # … until the button says otherwise
    tab.open(f"{served}/start.html")
    tab.until(f"{DARK} === 'slate'")
    tab.ask(TOGGLE)
    assert tab.faults == []


def test_search_finds_a_word_and_says_where(tab: Browser, served: str) -> None:
    tab.width(1280, phone=False)
    tab.faults.clear()
    tab.open(f"{served}/index.html?q=cutoff")
    tab.until("document.querySelectorAll('.md-search-result__item').length > 1")
    found = tab.ask("document.querySelector('.md-search-result__list').innerText")
    assert "cutoff" in found.lower()
    assert tab.faults == []


@pytest.mark.parametrize("pixels", [390, 1280])
def test_every_page_opens_from_disk_whole_and_no_wider_than_the_screen(
    tab: Browser, site: Path, pixels: int
) -> None:
    tab.width(pixels, phone=pixels < 800)
    tab.faults.clear()
    # The page for what is not found is for servers: it has absolute paths.
    pages = sorted(page for page in site.rglob("*.html") if page.name != "404.html")
    assert len(pages) > 20
    for page in pages:
        tab.open(page.as_uri())
        assert tab.faults == [], page.name
        assert tab.ask(BROKEN) == [], page.name
        assert tab.ask("document.documentElement.scrollWidth") <= pixels, page.name


def test_a_fault_is_noticed(tab: Browser, tmp_path: Path) -> None:
    tab.faults.clear()
    page = tmp_path / "faulty.html"
    page.write_text("<body><img src='missing.svg'><script>throw new Error('x')</script>")
    tab.open(page.as_uri())
    assert tab.ask(BROKEN) == [page.with_name("missing.svg").as_uri()]
    assert any("failed to load" in fault for fault in tab.faults)
    assert any("exception" in fault for fault in tab.faults)
