"""Weights & Biases: offline in the run's own folder, unless WANDB_MODE says otherwise."""

import os
from importlib import import_module
from typing import Any
from uuid import uuid4

from turnout.tracking.contract import About, Ending, Kind, Scalars, Tracker

RUN = "wandb.txt"
"""The run's id, kept in its folder so that a run that is resumed stays one run."""


def start(about: About) -> Tracker:
    wandb = import_module("wandb")
    about.folder.mkdir(parents=True, exist_ok=True)
    kept = about.folder / RUN
    if not (about.after and kept.exists()):
        kept.write_text(uuid4().hex[:12], encoding="utf-8")
    run: Any = wandb.init(
        project=about.experiment,
        group=about.method,
        name=about.name,
        id=kept.read_text(encoding="utf-8"),
        resume="allow" if about.after else None,
        config=dict(about.settings),
        dir=str(about.folder),
        # Nothing leaves this machine unasked; `wandb sync` sends it later.
        mode=os.environ.get("WANDB_MODE", "offline"),
        reinit="create_new",
        settings=wandb.Settings(silent=True, console="off"),
    )

    def log(round: int, metrics: Scalars) -> None:
        run.log(metrics, step=round)

    def close(ending: Ending) -> None:
        run.summary["status"] = ending
        run.finish(exit_code=0 if ending == "done" else 1)

    return Tracker(log, close)


KIND = Kind("wandb", start)
