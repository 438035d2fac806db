"""TensorBoard: event files in the run's own folder."""

from importlib import import_module
from typing import Any

from turnout.tracking.contract import About, Ending, Kind, Scalars, Tracker

FLUSH = 10
"""Seconds after which what was logged can be seen."""


def start(about: About) -> Tracker:
    # Steps from the checkpoint on are played again, so that what an earlier process had logged of
    # them is struck out.
    purge = about.after + 1 if about.after else None
    made = import_module("torch.utils.tensorboard").SummaryWriter
    writer: Any = made(str(about.folder), purge_step=purge, flush_secs=FLUSH)
    if not about.after:
        table = "\n".join(f"| {key} | `{value}` |" for key, value in about.settings.items())
        writer.add_text("settings", f"| | |\n|---|---|\n{table}", 0)

    def log(round: int, metrics: Scalars) -> None:
        for name, value in metrics.items():
            writer.add_scalar(name, value, round)

    def close(ending: Ending) -> None:
        writer.close()

    return Tracker(log, close)


KIND = Kind("tensorboard", start)
