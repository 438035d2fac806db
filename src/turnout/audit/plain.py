"""The audit as plain values: what JSON holds, and a table of the clients."""

import csv
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnout.audit.audit import Audit
from turnout.audit.cutoff import Cutoff
from turnout.audit.words import verdict


def as_json(found: Audit) -> dict[str, Any]:
    """Numbers, texts, lists and tables only; clients as one list a column, NaN as null."""
    history, federation = found.history, found.federation
    return {
        "verdict": verdict(found),
        "log": {
            "file": found.source,
            "clients": history.clients,
            "rounds": history.rounds,
            "round_s": history.round_s,
            "participations": len(history.round),
            "mends": dict(history.mends),
        },
        "federation": {**asdict(federation), "gaps": found.gaps.overall},
        "process": _process(found),
        "impact": _impact(found),
        "advice": {
            "method": _labelled(found.advice.method),
            "others": [_labelled(each) for each in found.advice.others],
            "reasons": list(found.advice.reasons),
            "costs": list(found.advice.costs),
            "server_samples": found.advice.server_samples,
            "cutoffs": None if found.advice.cutoff is None else _cutoffs(found.advice.cutoff),
        },
        "clients": {name: _list(values) for name, values in client_columns(found).items()},
    }


def _labelled(method: Any) -> dict[str, Any]:
    return {"label": method.label, **method.table()}


def _cutoffs(best: Cutoff) -> dict[str, Any]:
    """What each K that was tried leaves in the wrong place."""
    return {
        "among": best.among,
        "K": list(best.misplaced),
        "misplaced": list(best.misplaced.values()),
    }


def _process(found: Audit) -> dict[str, Any]:
    fit = found.fit
    chain = fit.chain
    return {
        "name": fit.name,
        "meaning": fit.meaning,
        "also": list(fit.also),
        "tests": [_finite(asdict(test)) for test in fit.tests],
        "markov": None
        if chain is None
        else {
            "join": chain.join._asdict(),
            "leave": chain.leave._asdict(),
            "memory": chain.memory,
            "spell": None if math.isinf(chain.spell) else chain.spell,
        },
        "period": None if fit.period is None else asdict(fit.period),
        "changes": [{**each._asdict(), "kind": each.kind} for each in fit.changes],
        "clients_used": fit.clients_used,
        "notes": list(fit.notes),
    }


def _finite(table: dict[str, Any]) -> dict[str, Any]:
    return {
        k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in table.items()
    }


def _impact(found: Audit) -> dict[str, Any]:
    objective, classes = found.impact.objective, found.impact.classes
    out: dict[str, Any] = {
        "total_variation": objective.total_variation,
        "by_chance": found.impact.by_chance,
        "missing": objective.missing,
        "classes": None,
    }
    if classes is not None:
        out["classes"] = {
            "names": list(classes.names),
            "intended": _list(classes.intended),
            "implicit": _list(classes.implicit),
            "held_by_never_seen": _list(classes.unseen),
            "total_variation": classes.total_variation,
            "worst": classes.names[classes.worst],
            "at_risk": [classes.names[k] for k in classes.at_risk],
        }
    return out


def client_columns(found: Audit) -> dict[str, Any]:
    """What is known of each client, a column a quantity."""
    history, rates, gaps = found.history, found.rates, found.gaps
    columns: dict[str, Any] = {
        "client": [history.name(n) for n in range(history.clients)],
        "participations": history.counts,
        "rate": rates.rate,
        "rate_low": rates.low,
        "rate_high": rates.high,
        "gap_mean": gaps.mean,
        "gap_median": gaps.median,
        "gap_90": gaps.p90,
        "gap_longest": gaps.longest,
        "longest_absence": gaps.longest_absence,
        "weight_intended": found.impact.objective.intended,
        "weight_plain": found.impact.objective.shares,
    }
    if history.asked is not None:
        columns["asked"] = history.asked
    return columns


def _list(values: NDArray[Any] | list[Any]) -> list[Any]:
    plain = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return [None if isinstance(v, float) and not math.isfinite(v) else v for v in plain]


def write_clients(path: Path, found: Audit) -> None:
    columns = {name: _list(values) for name, values in client_columns(found).items()}
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
