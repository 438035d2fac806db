"""MLflow: its local file store in ./mlruns, or what MLFLOW_TRACKING_URI names."""

import json
import os
from importlib import import_module
from pathlib import Path
from time import time
from typing import Any

from turnout.tracking.contract import About, Ending, Kind, Scalars, Tracker

STORE = "mlruns"
RUN = "mlflow.json"
"""Kept in the run's folder, so that a run that is resumed stays one run."""

_STATUS = {"done": "FINISHED", "diverged": "FAILED", "stopped": "KILLED"}


def client() -> Any:
    """A client of the store."""
    uri = os.environ.get("MLFLOW_TRACKING_URI") or Path(STORE).resolve().as_uri()
    if uri.startswith("file:") or "://" not in uri:
        # MLflow 3 wants to hear that one means it.
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    return import_module("mlflow").MlflowClient(tracking_uri=uri)


def prepare(experiment: str) -> None:
    """Create the experiment now: processes that run side by side would create it twice."""
    store = client()
    if store.get_experiment_by_name(experiment) is None:
        store.create_experiment(experiment)


def start(about: About) -> Tracker:
    store, entities = client(), import_module("mlflow.entities")
    run, last = _resumed(store, about) if about.after else (None, 0)
    if run is None:
        prepare(about.experiment)
        experiment = store.get_experiment_by_name(about.experiment)
        tags = {"method": about.method, "seed": str(about.seed)}
        made = store.create_run(experiment.experiment_id, run_name=about.name, tags=tags)
        run = made.info.run_id
        settings = [entities.Param(key, str(value)[:500]) for key, value in about.settings.items()]
        store.log_batch(run, params=settings)
        about.folder.mkdir(parents=True, exist_ok=True)
        (about.folder / RUN).write_text(json.dumps({"run_id": run}), encoding="utf-8")

    def log(round: int, metrics: Scalars) -> None:
        if round <= last:
            return  # A resumed run plays the same rounds to the same numbers.
        now = int(1000 * time())
        store.log_batch(
            run,
            metrics=[entities.Metric(name, value, now, round) for name, value in metrics.items()],
        )

    def close(ending: Ending) -> None:
        store.set_terminated(run, status=_STATUS[ending])

    return Tracker(log, close)


def _resumed(store: Any, about: About) -> tuple[str | None, int]:
    """The run of before, if it is still there, and the last round that it has."""
    try:
        run = json.loads((about.folder / RUN).read_text(encoding="utf-8"))["run_id"]
        known = store.get_run(run).data.metrics
    except Exception:  # moved or deleted: then it is another run
        return None, 0
    store.update_run(run, status="RUNNING")
    last = max((m.step for name in known for m in store.get_metric_history(run, name)), default=0)
    return run, last


KIND = Kind("mlflow", start, prepare)
