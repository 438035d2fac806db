"""A run directory as a long run of many clients leaves it, without the run."""

from pathlib import Path

import numpy as np

from turnout.experiments.directory import cell_folders, describe
from turnout.experiments.files import json_line, json_text
from turnout.experiments.read import configure
from turnout.experiments.resolved import resolved
from turnout.participation import bernoulli, export, record

METHODS = {
    "average participating": "fedavg",
    "average all": "average_all",
    "known p": "known",
    "FedAU": "fedau",
    "MIFA": "mifa",
    "FedVARP": "fedvarp",
    "SCAFFOLD": "scaffold",
}
CLASSES = 10


def large(folder: Path, clients: int = 250, rounds: int = 10_000, seeds: int = 2) -> Path:
    """Seven methods evaluated every ten rounds; numbers are noise around plausible curves."""
    draw = np.random.default_rng(0)
    rates = np.clip(draw.exponential(0.1, clients), 0.02, 1)
    rates[-3:] = 0
    config = configure(
        {
            "run": {"name": "large", "rounds": rounds, "seeds": list(range(seeds))},
            "data": {"partition": {"name": "dirichlet", "clients": clients, "alpha": 0.1}},
            "participation": {"process": "bernoulli", "p": rates.tolist()},
            "algorithm": [{"name": name, "label": label} for label, name in METHODS.items()],
        }
    )
    folder.mkdir(parents=True)
    describe(folder, resolved(config))
    log = folder / "log.parquet"
    kept = record(bernoulli(rates), rounds)
    export(kept, log)
    came = np.bincount(kept.client, minlength=clients)
    at = np.arange(10, rounds + 1, 10)
    for place, (label, inside) in enumerate(cell_folders(METHODS).items()):
        for seed in range(seeds):
            cell = folder / inside / f"seed-{seed}"
            cell.mkdir(parents=True)
            (cell / "participation.parquet").hardlink_to(log)
            top = 0.7 + 0.02 * place
            curve = top * (1 - np.exp(-at / rounds * 8)) + draw.normal(0, 0.02, len(at))
            own = np.clip(draw.normal(top, 0.1, clients), 0, 1)
            own[-3:] = 0.1
            deciles = [float(part.mean()) for part in np.array_split(own[np.argsort(came)], 10)]
            lines = [
                {"round": int(r), "test_accuracy": float(a), "test_loss": float(2 - 2 * a)}
                for r, a in zip(at, curve, strict=True)
            ]
            lines[-1] |= {"decile_accuracy": deciles, "never_seen_accuracy": 0.1}
            (cell / "metrics.jsonl").write_text("\n".join(map(json_line, lines)) + "\n")
            costs = {"server": 1000 * place, "client": 0, "down": 2_000_000, "up": 2_000_000}
            status = {
                "algorithm": label,
                "seed": seed,
                "status": "done",
                "round": rounds,
                "memory": label in ("MIFA", "FedVARP"),
                "costs": costs,
            }
            (cell / "status.json").write_text(json_text(status))
            rows = ["client,samples,rate,delivered,effective_weight,loss,accuracy"]
            weight = came * draw.uniform(0.5, 2, clients)
            rows += [
                f"{n},200,{rates[n]},{came[n]},{weight[n]},1.0,{own[n]}" for n in range(clients)
            ]
            (cell / "clients.csv").write_text("\n".join(rows) + "\n")
            table = ["class,samples,samples_seen,accuracy"]
            table += [f"{c},5000,{4000 if c < 8 else 0},{top}" for c in range(CLASSES)]
            (cell / "classes.csv").write_text("\n".join(table) + "\n")
    return folder
