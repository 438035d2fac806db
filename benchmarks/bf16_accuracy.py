"""What bfloat16 costs in accuracy: one table, FedAU's setting with and without it.

    python benchmarks/bf16_accuracy.py [rounds] [seeds]

Fashion-MNIST where TURNOUT_DATA or ../shared/data has it, otherwise the digits; FedAU's small CNN,
Bernoulli participation by class, FedAU with K = 50 and average participating. Same seeds, same
mini-batches, same absences: what differs is the arithmetic of local training.
"""

import sys

import numpy as np
import torch

from turnout import Local, Model, World, algorithms, data, participation, simulate
from turnout.data import partition
from turnout.errors import InputError

CLIENTS = 100


def world(seed: int) -> World:
    try:
        train, test = data.load("fashion_mnist")
    except InputError:
        train, test = data.load("digits")
    labels = train.targets.numpy()
    dealt = partition.dirichlet(labels, clients=CLIENTS, alpha=0.1, seed=seed)
    mix = partition.class_mix(dealt, labels, classes=10)
    rates = participation.class_rates(mix, seed=seed)
    return World.build(train, dealt, test, participation.bernoulli(rates, seed=seed))


def main(rounds: int, seeds: int) -> None:
    methods = {
        "average participating": algorithms.fedavg(local=Local(0.05)),
        "FedAU, K = 50": algorithms.fedau(cutoff=50, local=Local(0.05)),
    }
    print(
        f"torch {torch.__version__}, {rounds} rounds, {seeds} seeds, mean of the last {rounds // 5}"
    )
    print("| | float32 % | bfloat16 % | difference, points | ms a round, float32 | bfloat16 |")
    print("|:---|---:|---:|---:|---:|---:|")
    for name, method in methods.items():
        accuracy: dict[str, list[float]] = {"full": [], "bf16": []}
        seconds: dict[str, list[float]] = {"full": [], "bf16": []}
        for seed in range(seeds):
            given = world(seed)
            model = Model.of("cnn", tuple(given.train.inputs.shape[1:]), 10)
            for precision in ("full", "bf16"):
                run = simulate(
                    method, given, model, rounds, seed=seed, engine="threaded",
                    evaluate_every=max(1, rounds // 25), clients_every=rounds, client_samples=5,
                    precision=precision,
                )  # fmt: skip
                accuracy[precision].append(100 * run.tail(rounds // 5))
                seconds[precision].append(1e3 * run.seconds / rounds)
        full, half = (np.array(accuracy[kind]) for kind in ("full", "bf16"))
        gap = half - full
        print(
            f"| {name} | {full.mean():.2f} ± {full.std():.2f} | {half.mean():.2f} ± {half.std():.2f} "
            f"| {gap.mean():+.2f} ± {gap.std():.2f} | {min(seconds['full']):.0f} "
            f"| {min(seconds['bf16']):.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:]]
    main(*(given + [150, 2][len(given) :]))
