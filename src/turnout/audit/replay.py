"""An experiment that replays the log: the recommended method beside plain averaging.

Handwritten digits stand in for the clients' data. With class counts they are dealt in these
proportions; without, as is to be feared: the clients' class goes with how often they come.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnout.audit.classes import ClassCounts
from turnout.audit.history import History, to_log
from turnout.audit.recommend import Advice, Method
from turnout.draws import generator
from turnout.experiments.toml import dumps
from turnout.participation.export import export

_CLIENTS = 500  # digits has 1 438 samples to deal
_ROUNDS = (300, 2000)
_SERVER = 100
_DIGITS = 10


def write_replay(
    folder: Path, history: History, advice: Advice, classes: ClassCounts | None
) -> Path:
    """Write `log.parquet`, `experiment.toml` and, with class counts, `data/`; returns the TOML."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = chosen(history)
    export(to_log(history, rows), folder / "log.parquet")
    if classes is not None:
        deal(folder / "data", classes.counts[rows])
    path = folder / "experiment.toml"
    text = dumps(experiment(history, len(rows), advice, classes is not None))
    path.write_text(_head(history, len(rows), advice, classes) + text, encoding="utf-8")
    return path


def chosen(history: History) -> NDArray[np.int64]:
    """The clients to replay, the rarest first; of many, every so-manieth in this order."""
    order = np.argsort(history.counts, kind="stable")
    if len(order) <= _CLIENTS:
        return order
    return order[np.linspace(0, len(order) - 1, _CLIENTS).round().astype(np.int64)]


def experiment(history: History, clients: int, advice: Advice, dealt: bool) -> dict[str, Any]:
    """The tables of the file."""
    if dealt:
        data: dict[str, Any] = {"name": "./data", "features": ["pixels"], "client": "client"}
        data["partition"] = {"name": "natural"}
    else:
        data = {"name": "digits"}
        data["partition"] = {"name": "similarity", "clients": clients, "share": 0.05}
    if advice.server_samples is not None:
        # The clients' data are few here, too: at most a fourteenth of them goes to the server.
        data["auxiliary"] = {"size": min(advice.server_samples, _SERVER)}
        data["auxiliary"]["shared"] = True
    plain = Method("fedavg", "average participating")
    methods = [plain, *(each for each in (advice.method, *advice.others) if each.name != "fedavg")]
    return {
        "run": {
            "rounds": int(np.clip(history.rounds, *_ROUNDS)),
            "seeds": [0, 1, 2],
            "tail": 100,
        },
        "data": data,
        "participation": {"process": "given", "mask": "log.parquet", "repeat": True},
        "model": {"name": "perceptron", "hidden": [64]},
        "local": {"lr": 0.1, "steps": 5, "batch_size": 16},
        "algorithm": [_labelled(each) for each in methods],
    }


def _labelled(method: Method) -> dict[str, Any]:
    table = method.table()
    return {"name": table.pop("name"), "label": method.label, **table}


def _head(history: History, clients: int, advice: Advice, classes: ClassCounts | None) -> str:
    who = f"all {clients}" if clients == history.clients else f"{clients} of {history.clients}"
    if classes is None:
        what = (
            "Real handwritten digits stand in for their data. Rows are sorted by how often a client "
            "comes, and neighbours hold the same digit (5 % is mixed): class and availability go together."
        )
    else:
        more = len(classes.names) > _DIGITS
        what = "Real handwritten digits stand in for their data, in the proportions of the class counts"
        what += f" (classes beyond {_DIGITS} share a digit)." if more else "."
    lines = [
        f"Replays the audited log: {who} clients, {history.rounds} rounds.",
        what,
        *advice.reasons,
    ]
    return "".join(f"# {line}\n" for line in lines) + "#\n# turnout run experiment.toml\n\n"


def deal(folder: Path, counts: NDArray[np.int64], seed: int = 0) -> None:
    """Digits in Parquet, each class cut among clients in proportion to `counts` [clients, classes].

    Everyone gets at least one sample, of the class that they have most of, so that the natural
    partition has as many clients as the log.
    """
    import pyarrow
    from pyarrow import parquet

    from turnout.data.digits import digits

    folded = np.zeros((len(counts), _DIGITS))
    np.add.at(folded.T, np.arange(counts.shape[1]) % _DIGITS, counts.T.astype(np.float64))
    draw = generator(seed, "audit deal")
    train, test = digits()
    labels = train.targets.numpy()
    owner = np.full(len(labels), -1)
    first = np.where(
        folded.sum(axis=1) > 0, folded.argmax(axis=1), np.arange(len(folded)) % _DIGITS
    )
    for c in range(_DIGITS):
        rows = draw.permutation(np.flatnonzero(labels == c))
        must = np.flatnonzero(first == c)
        weights = folded[:, c]
        own = np.arange(len(rows)) < len(must)
        owner[rows[own]] = must[: len(rows)]
        if weights.sum() > 0:
            ends = np.rint(np.cumsum(weights) / weights.sum() * int((~own).sum())).astype(np.int64)
            owner[rows[~own]] = np.repeat(np.arange(len(folded)), np.diff(ends, prepend=0))
    _feed(owner, len(folded))
    folder.mkdir(parents=True, exist_ok=True)
    for name, pool, owners in (
        ("train", train, owner),
        ("test", test, np.zeros(len(test), np.int64)),
    ):
        kept = owners >= 0
        pixels = (pool.inputs.numpy().reshape(len(pool), -1) / 240).astype(np.float32)[kept]
        table = {
            "pixels": list(pixels),
            "label": pool.targets.numpy()[kept],
            "client": owners[kept],
        }
        parquet.write_table(pyarrow.table(table), folder / f"{name}.parquet")


def _feed(owner: NDArray[np.int64], clients: int) -> None:
    """A sample for each client that a class with too few left without.

    One that is nobody's, of another class, or else one of the richest client's.
    """
    for empty in np.flatnonzero(np.bincount(owner[owner >= 0], minlength=clients) == 0):
        free = np.flatnonzero(owner < 0)
        if not len(free):
            free = np.flatnonzero(owner == np.bincount(owner, minlength=clients).argmax())
        owner[free[0]] = empty
