"""The grid search of step sizes in FedAU's appendix C.4: γ at η = 1, then η at that γ."""

from copy import deepcopy
from math import inf, log10
from typing import Any

from turnout.reproduce.evidence import as_cells
from turnout.reproduce.grid import Cell, cell_of, experiment, seeds_of
from turnout.reproduce.item import METHOD
from turnout.reproduce.judge import MARKS, Entry, Verdict
from turnout.reproduce.origin import origin
from turnout.reproduce.report import Report
from turnout.reproduce.request import Request
from turnout.reproduce.run import Played
from turnout.reproduce.values import DECIMALS, Measured, value

Sizes = tuple[float, float]
"""(γ, η)"""
STEP = 0.25
"""Grids go by quarter powers of ten."""
NOTES = ("= is the same pair of step sizes; ~ is at most one step of the grid away.",)


def search(request: Request) -> Report:
    """Choose both step sizes of every method by the training loss of the last round."""
    item = request.item
    grids = item.settings | item.settings.get(request.scale, {})
    methods = [method["label"] for method in item.experiment["algorithm"]]
    first = {m: [(float(lr), 1.0) for lr in grids["lr"]] for m in methods}
    losses, one = _play(request, first)
    best = {m: min(first[m], key=lambda sizes: losses[m, sizes]) for m in methods}
    second = {m: [(best[m][0], float(server)) for server in grids["server_lr"]] for m in methods}
    more, two = _play(request, second)
    losses |= more
    chosen = {m: min(second[m], key=lambda sizes: losses[m, sizes]) for m in methods}
    rows: list[dict[str, Any]] = [
        {"method": m, "γ": lr, "η": server, "loss": loss, "chosen": chosen[m] == (lr, server)}
        for (m, (lr, server)), loss in losses.items()
    ]
    entries = [_judge(m, chosen[m], losses[m, chosen[m]], item.printed.get(m)) for m in methods]
    verdicts = {m: entry.verdict for m, entry in zip(methods, entries, strict=True)}
    for row in rows:
        row["verdict"] = verdicts[row["method"]] if row["chosen"] else ""
    shown = [["", "γ", "η", "training loss", "the paper's γ, η", ""]]
    for entry, m in zip(entries, methods, strict=True):
        lr, server = chosen[m]
        paper = ", ".join(map(str, item.printed.get(m, [])))
        shown.append([m, f"{lr:g}", f"{server:g}", str(entry.ours), paper, MARKS[entry.verdict]])
    played = one + two
    return Report(
        request, shown, rows, entries, None, NOTES, origin(played), cells=as_cells(played, 1)
    )


def _play(
    request: Request, wanted: dict[str, list[Sizes]]
) -> tuple[dict[tuple[str, Sizes], float], list[Played]]:
    """Mean training losses over seeds; infinite where a seed diverged."""
    item, scale = request.item, request.item.scales[request.scale]
    asked: list[tuple[str, Sizes]] = []
    chosen: list[Cell] = []
    for seed in seeds_of(item, scale, request.seeds):
        for method, pairs in wanted.items():
            for lr, server in pairs:
                table = deepcopy(experiment(item, scale))
                for each in table["algorithm"]:
                    if each["label"] == method:
                        each |= {"lr": lr, "server_lr": server}
                point = {METHOD: method, "γ": f"γ={lr:g}", "η": f"η={server:g}"}
                chosen.append(cell_of(item, scale, point, seed, table))
                asked.append((method, (lr, server)))
    played = request.play(chosen)
    sums: dict[tuple[str, Sizes], list[float]] = {}
    for key, each in zip(asked, played, strict=True):
        good = each.record["status"] == "done"
        sums.setdefault(key, []).append(value("train_loss", each.record, 1) if good else inf)
    return {key: sum(values) / len(values) for key, values in sums.items()}, played


def _judge(method: str, chosen: Sizes, loss: float, paper: list[float] | None) -> Entry:
    ours = Measured(loss, None, 1, DECIMALS["train_loss"])
    if not paper:
        return Entry(method, "", ours, None)
    steps = [abs(log10(a / b)) / STEP for a, b in zip(chosen, paper, strict=True)]
    verdict: Verdict = "differs"
    if max(steps) < 1.5:
        verdict = "matches" if max(steps) < 0.5 else "same order"
    why = "" if verdict != "differs" else f"{max(steps):.0f} steps of the grid away"
    return Entry(method, "", ours, None, verdict, why)
