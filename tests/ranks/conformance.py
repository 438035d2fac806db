"""One rank of several: runs every case and leaves the models, for `test_ranks` to compare."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import torch
from tests.conformance.cases import CASES, ROUNDS, classification, in_process, logistic

from turnout import checkpoint
from turnout.participation import arrivals
from turnout.ranks import found
from turnout.runs import simulate
from turnout.simulator import Simulation, advance, begin, client_tables, made, restore
from turnout.tables import Tables
from turnout.world import World


def one_by_one(folder: Path) -> World:
    """A world in which each round is an arrival, and some clients take long."""
    jobs = [(n, k * (1 + 2 * n), 1 + 2 * n) for n in range(6) for k in range(6 - n)]
    log = folder / f"paces-{os.getpid()}.csv"
    lines = [f"{client},{start},{took}\n" for client, start, took in jobs]
    log.write_text("client,started_s,took_s\n" + "".join(lines))
    return replace(classification(), participation=arrivals(log))


def main(out: Path, in_files: list[str]) -> None:
    ranks = found()
    models = {}
    for case, algorithm in CASES.items():
        limit = Tables(limit=0 if case in in_files else 1 << 30)
        of = (algorithm, classification(), logistic())
        simulation = Simulation.of(*of, dtype=torch.float64, tables=limit, ranks=ranks)
        progress, path = begin(simulation), []
        for t in range(ROUNDS):
            if t in (6, 8):  # goes on from a checkpoint, which the first rank writes for all
                checkpoint.BLOCK_BYTES = 64 if len(models) % 2 else 1 << 20  # in blocks, or whole
                folder, names = out / case, client_tables(simulation)
                held = [*progress.kept.values(), *progress.server.memory.values()]

                def save(progress=progress, folder=folder, names=names, t=t) -> None:
                    checkpoint.save(folder, t, progress, None, progress.delivered, names)

                ranks.showing(held, save)
                found_there = checkpoint.load(folder, made=made(simulation.zeros))
                assert found_there is not None
                progress = restore(simulation, found_there.tree)
            advance(simulation, progress)
            path.append(progress.server.x.clone())
        models[case] = torch.stack(path)
    run = simulate(
        CASES["safari, scaffold"], classification(), logistic(), ROUNDS, evaluate_every=2
    )
    models["simulate"] = run.x
    models["arrivals"] = torch.stack(
        in_process(CASES["fedbuff"], one_by_one(out), logistic(), ROUNDS, ranks=ranks)
    )
    torch.save({"models": models, "history": run.history}, out / f"rank-{ranks.rank}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2].split(";"))
