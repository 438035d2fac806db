"""The audit as files: a page, JSON, a table of clients, and an experiment that replays the log."""

import json
from pathlib import Path
from tempfile import TemporaryFile

from turnout.audit.audit import Audit
from turnout.audit.page import page
from turnout.audit.plain import as_json, write_clients
from turnout.audit.replay import write_replay
from turnout.errors import InputError
from turnout.experiments.files import write
from turnout.report.page import keep

PAGE, JSON, CLIENTS = "audit.html", "audit.json", "clients.csv"


def folder_for(out: Path) -> Path:
    """The folder: whether it can be written is tried before the work, so that none is lost.

    Nothing is left behind by that: the work may find that the log is none.
    """
    there = out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=out):
            pass
        if not there:
            out.rmdir()
    except OSError as error:
        reason = error.strerror or error
        raise InputError(
            f"--out {out} cannot be written: {reason}; it must be a folder that can"
        ) from error
    return out


def write_all(found: Audit, folder: Path) -> list[str]:
    """Write everything; what there is to open and to run, a line each."""
    experiment = write_replay(folder, found.history, found.advice, found.classes)
    write(folder / JSON, json.dumps(as_json(found), indent=1) + "\n")
    write_clients(folder / CLIENTS, found)
    keep(page(found, experiment.read_text(encoding="utf-8")), folder / PAGE)
    return [
        f"{folder / PAGE}  # all this with figures, for a browser",
        f"turnout run {experiment}  # replays this log: plain averaging beside the above",
    ]
