"""The audit's page says what the terminal says, with figures, whatever the log."""

import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from tests.audit.processes import KNOWN, drawn
from tests.browser import CHROMIUM, browser

from turnout.audit import words
from turnout.audit.audit import Audit, audit
from turnout.audit.figures import cutoffs, cycle, spectrum, weights
from turnout.audit.history import History, from_mask, from_pairs
from turnout.audit.output import write_all
from turnout.audit.page import page
from turnout.experiments.style import settings
from turnout.participation import always, bernoulli, excluded
from turnout.report.page import html


def text(found: Audit) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", html(page(found))))


def skewed() -> Audit:
    return audit(from_mask(excluded(bernoulli(np.linspace(0.02, 0.9, 40)), [5]).mask(400)))


def test_it_has_every_line_of_the_terminal() -> None:
    found = skewed()
    made = text(found)
    assert words.verdict(found) in made
    for lines in (words.log, words.who, words.process, words.fitted, words.effect):
        for left, right in lines(found):
            assert left in made
            assert right in made
    for test in found.fit.tests:
        assert all(cell in made for cell in words.tested(test))
    for line in (*found.advice.reasons, *found.advice.costs):
        assert line in made


@pytest.mark.parametrize(
    "history",
    [
        from_mask(always(3).mask(50)),
        from_mask([[1]]),
        from_pairs([0, 1], [3, 7], clients=3, rounds=9),
        from_pairs([0, 1], [99_990, 99_999], 2, 100_000),
        from_mask(bernoulli(0.01, clients=700, seed=1).mask(30)),
    ],
    ids=["constant", "one", "two", "a hole", "many"],
)
def test_any_log_has_a_page(history: History) -> None:
    made = html(page(audit(history)))
    assert "nan" not in re.sub(r"<[^>]+>", " ", made).lower().split()
    assert len(made) < 3_000_000


@pytest.mark.parametrize("name", KNOWN)
def test_a_cycle_is_drawn_where_there_is_one(name: str) -> None:
    found = audit(drawn(name, 20, 300, 0))
    with settings():
        shown = cycle(found)
        searched = spectrum(found)
    assert (shown is None) == (found.fit.period is None)
    assert (searched is None) == (found.fit.name == "regularised")


def test_the_weights_drawn_are_those_of_the_objective() -> None:
    found = skewed()
    with settings():
        plain, fedau = weights(found).axes[0].lines[:2]
        tried = cutoffs(found)
    order = np.argsort(found.history.counts, kind="stable")
    np.testing.assert_allclose(plain.get_ydata(), found.impact.objective.ratio[order])
    assert np.abs(np.asarray(fedau.get_ydata())[1:] - 1).mean() < 0.1, "as intended, about"
    assert found.advice.cutoff is not None
    assert tried is not None
    assert len(np.asarray(tried.axes[0].lines[0].get_xdata())) == len(found.advice.cutoff.misplaced)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_in_a_browser_nothing_is_missing_or_too_wide(tmp_path: Path) -> None:
    (tmp_path / "classes.csv").write_text(
        "client,cat,dog\n" + "\n".join(f"{n},{n},{40 - n}" for n in range(40))
    )
    found = audit(skewed().history, classes=tmp_path / "classes.csv")
    assert found.impact.classes is not None
    write_all(found, tmp_path)
    with browser(str(tmp_path / "profile")) as tab:
        for pixels in (360, 1280):
            tab.width(pixels, phone=pixels < 800)
            tab.open((tmp_path / "audit.html").as_uri())
            assert tab.faults == []
            assert tab.ask("document.documentElement.scrollWidth") <= pixels
        assert tab.ask("document.querySelectorAll('figure svg.drawing').length") == 8
        assert "cutoff = " in tab.ask("document.querySelector('details code').textContent")
