"""Follow a run with any number of trackers, none of which can end it."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from turnout.errors import InputError, choose
from turnout.tracking import mlflow, tensorboard, wandb
from turnout.tracking.contract import About, Ending, Kind, Scalars, Tracker

log = logging.getLogger("turnout")

TRACKERS: dict[str, Kind] = {
    "tensorboard": tensorboard.KIND,
    "mlflow": mlflow.KIND,
    "wandb": wandb.KIND,
}


class Following:
    """A run that is followed: give it metrics as `simulate` reports them."""

    def __init__(self) -> None:
        self.trackers: dict[str, Tracker] = {}
        self.ending: Ending = "done"
        """How the run ends, unless an exception ends it."""

    def __call__(self, metrics: Mapping[str, Any]) -> None:
        numbers = scalars(metrics)
        for name, tracker in list(self.trackers.items()):
            try:
                tracker.log(int(metrics["round"]), numbers)
            except Exception as error:
                del self.trackers[name]
                _warn(name, error)


@contextmanager
def follow(names: Sequence[str], about: About) -> Iterator[Following]:
    """Within this, the run is followed by the trackers of these names.

    A tracker that fails is left behind with a warning: what it shows is in the run's own files, too.
    """
    following = Following()
    for name in names:
        try:
            following.trackers[name] = kind(name).start(about)
        except InputError:
            raise
        except Exception as error:
            _warn(name, error)
    ending: Ending = "stopped"
    try:
        yield following
        ending = following.ending
    finally:
        for name, tracker in following.trackers.items():
            try:
                tracker.close(ending)
            except Exception as error:
                _warn(name, error)


def check(names: Sequence[str]) -> None:
    """See that these trackers are known and installed."""
    for name in names:
        kind(name)


def prepare(names: Sequence[str], experiment: str) -> None:
    """Make these trackers ready for an experiment's runs."""
    for name in names:
        known = kind(name)
        try:
            known.prepare(experiment)
        except Exception as error:
            _warn(name, error)


def kind(name: str) -> Kind:
    """The tracker of this name; an `InputError` where it is not known or not installed."""
    known = TRACKERS[choose("track", name, TRACKERS)]
    if find_spec(known.module) is None:
        raise InputError(
            f"track is {name!r}, which is not installed; it must be: pip install 'turnout[track]'"
        )
    return known


def scalars(metrics: Mapping[str, Any]) -> Scalars:
    """Numbers under the names that they have in metrics.jsonl; those of a list are numbered.

    >>> scalars({"round": 10, "by": "clients", "test_loss": 0.5, "decile_accuracy": [0.1, 0.2]})
    {'test_loss': 0.5, 'decile_accuracy/1': 0.1, 'decile_accuracy/2': 0.2}
    """
    found: Scalars = {}
    for name, value in metrics.items():
        if name == "round" or isinstance(value, str) or value is None:
            continue
        if isinstance(value, list | tuple):
            found |= {f"{name}/{place}": float(each) for place, each in enumerate(value, 1)}
        else:
            found[name] = float(value)
    return found


def _warn(name: str, error: Exception) -> None:
    log.warning(
        "%s follows no longer (%s: %s); the run goes on, and its own files have all metrics",
        name,
        type(error).__name__,
        " ".join(str(error).split())[:200],
    )
