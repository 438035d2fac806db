"""`turnout run` and `turnout demo`: run an experiment, then show what came of it."""

import os
import sys
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

from turnout.cli.progress import Telling, progress
from turnout.cli.screen import print_summary, say, stderr, stdout
from turnout.experiments.config import Config
from turnout.experiments.directory import REPORT
from turnout.experiments.files import json_text
from turnout.experiments.findings import findings
from turnout.experiments.interrupt import interruptible
from turnout.experiments.read import read
from turnout.experiments.run import Outcome, run_experiment
from turnout.experiments.summary import as_json
from turnout.ranks import found


def execute(
    file: Path,
    changes: Sequence[str],
    out: Path | None,
    quiet: bool,
    json: bool,
    resume: bool = False,
    jobs: int = 1,
) -> int:
    """Run the experiment in `file` (or, with `resume`, go on with it in `out`); the exit code."""
    # So that "package.module:function" finds what lies beside the user, as with `python -m`.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    if not found().first:  # One of several processes speaks for all.
        quiet, json = True, False
    outcome = _run(read(file, changes), out, quiet, json, resume, jobs)
    return _end(outcome, quiet or json)


def demonstrate(out: Path | None, changes: Sequence[str], quiet: bool, json: bool) -> int:
    """Run the demo, and say what its numbers show; the exit code."""
    with as_file(files("turnout.experiments") / "demo.toml") as file:
        config = read(file, changes)
    outcome = _run(config, out, quiet, json)
    if not (quiet or json):
        say("")
        for sentence in findings(outcome.summary):
            say(sentence)
    return _end(outcome, quiet or json)


def _run(
    config: Config, out: Path | None, quiet: bool, json: bool, resume: bool = False, jobs: int = 1
) -> Outcome:
    telling = Telling.not_at_all if quiet else Telling.as_json if json else Telling.to_people
    with progress(config, telling, jobs) as told, interruptible() as asked:
        watch, planned = (None, None) if told is None else (told.watch, told.planned)
        outcome = run_experiment(config, out, watch, asked, resume, jobs, planned)
    report = _report(outcome) if found().first else None
    if json:
        said = {
            "out": str(outcome.results.folder),
            "report": report and str(report),
            "summary": as_json(outcome.summary),
            "diverged": outcome.failures,
        }
        stdout().out(json_text(said), end="", highlight=False)
    elif not quiet:
        print_summary(outcome.summary)
    return outcome


def _report(outcome: Outcome) -> Path | None:
    """The page to look at, where there is more than one cell to compare and plots are wanted."""
    if not outcome.plots or len(outcome.results.cells) < 2:
        return None
    from turnout.report.comparison import write_report

    return write_report([outcome.results.folder])


def _end(outcome: Outcome, quiet: bool) -> int:
    if not found().first:
        return 1 if outcome.failures else 0
    console = stderr()
    for sentence in outcome.failures:
        say(f"turnout: {sentence}", console)
    if not quiet:
        for sentence in _engines(outcome):
            say(sentence, console)
        what = "Metrics, models and plots" if outcome.plots else "Metrics and models"
        say(f"{what}: {outcome.results.folder}", console)
        page = outcome.results.folder / REPORT
        if page.exists():
            say(f"Report, for a browser: {page}", console)
    return 1 if outcome.failures else 0


def _engines(outcome: Outcome) -> list[str]:
    """What trained, and why: a sentence for each engine, with the reason of the first cell."""
    found: dict[str, str] = {}
    for cell in outcome.results.cells:
        name, _, why = cell.engine.partition(": ")
        found.setdefault(name, why)
    return [f"Engine {name}: {why}" for name, why in found.items() if name]
