"""One rank of several: runs every case and leaves the models, for `test_ranks` to compare."""

import sys
from pathlib import Path

import torch
from tests.conformance.cases import CASES, ROUNDS, classification, logistic

from turnout import checkpoint
from turnout.ranks import found
from turnout.runs import simulate
from turnout.simulator import Simulation, advance, begin, client_tables, made, restore
from turnout.tables import Tables


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
    torch.save({"models": models, "history": run.history}, out / f"rank-{ranks.rank}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2].split(";"))
