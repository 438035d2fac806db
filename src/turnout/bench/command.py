"""`turnout bench`: measure here, beside others, and say it in tables."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from turnout.bench.contestants import CONTESTANTS
from turnout.bench.machine import hardware, load, versions
from turnout.bench.measure import FULL, QUICK, Measured, measure
from turnout.bench.population import Bookkeeping, all_sizes
from turnout.bench.profiled import Shares, where_time_goes
from turnout.bench.report import (
    as_markdown,
    as_text,
    facts,
    heading,
    population_table,
    ratios,
    table,
)
from turnout.bench.workloads import WORKLOADS
from turnout.errors import choose

POPULATION = "d"
_ABOUT_POPULATION = "(d) bookkeeping: who comes, and FedAU's weights, without training"


def bench(
    which: Annotated[
        str, typer.Argument(metavar="WORKLOADS", help="some of a, b, c and d, as in ac")
    ] = "abcd",
    quick: Annotated[
        bool, typer.Option("--quick", help="a minute or two: shorter turns, no Flower, no profile")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write the tables there, as Markdown")
    ] = None,
) -> None:
    """How fast turnout is here, beside pfl-research, Flower's simulation and plain PyTorch.

    (a) logistic regression, (b) FedAU's CNN, (c) a perceptron, (d) bookkeeping for up to ten million
    clients. Everybody does the same work, mini-batches drawn and gathered; contestants take turns,
    and the best turn of each counts. Others play if they are installed: pip install pfl
    'flwr[simulation]'.
    """
    for key in which:
        choose("workload", key, [*WORKLOADS, POPULATION])
    plan = QUICK if quick else FULL
    names = [name for name in CONTESTANTS if not (quick and CONTESTANTS[name].own_pace)]
    everything: list[Measured] = []
    profiles: dict[str, Shares] = {}
    for key, workload in WORKLOADS.items():
        if key in which:
            found = measure(workload, names, plan, _say)
            everything.append(found)
            print(f"\n{heading(found)}\n{as_text(table(found))}\n{facts(found)}")  # noqa: T201
            if not quick:
                profiles[key] = where_time_goes(workload, plan.seconds)
                print(_profile(profiles[key]))  # noqa: T201
    people: list[Bookkeeping] = []
    if POPULATION in which:
        people = all_sizes(1_000_000 if quick else 10_000_000, 5 if quick else 20, _say)
        print(f"\n{_ABOUT_POPULATION}\n{as_text(population_table(people))}")  # noqa: T201
    print("\n" + "\n".join([_where(), *ratios(everything)]))  # noqa: T201
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        command = f"turnout bench {which}{' --quick' if quick else ''}"
        out.write_text(_page(command, everything, profiles, people), encoding="utf-8")


def _page(
    command: str,
    everything: Sequence[Measured],
    profiles: dict[str, Shares],
    people: Sequence[Bookkeeping],
) -> str:
    parts = [
        "# Benchmarks",
        f"Written by `{command}`. {_where()}",
        "Everybody does the same work: mini-batches are drawn, gathered from bytes and normalised, "
        "clients train, the server averages; nothing is evaluated. Each contestant is a process "
        "of its own; they take turns, and the best turn of each counts. The peak is that of "
        "torch's float32 products of 1024 × 1024 matrices on all cores, timed in the same turns. Peak "
        "memory is that of all processes of a contestant, Python and torch included. 1 thread "
        "and as many as cores: others are compared at the better one.",
    ]
    for found in everything:
        parts += [f"## {heading(found)}", as_markdown(table(found)), facts(found)]
        if found.workload.key in profiles:
            parts.append(_profile(profiles[found.workload.key]))
    if people:
        parts += [f"## {_ABOUT_POPULATION}", as_markdown(population_table(people))]
        parts.append(
            "A thousandth of the population comes in a round; the last column is a whole round "
            "without training of a thousand participants (or all), whatever the population."
        )
    if said := ratios(everything):
        parts += ["## Ratios", "\n".join(f"- {sentence}" for sentence in said)]
    return "\n\n".join(parts) + "\n"


def _profile(shares: Shares) -> str:
    some = ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares if share >= 0.01)
    return f"Where the time goes (one worker, one thread): {some}."


def _where() -> str:
    packages = ", ".join(f"{name} {number}" for name, number in versions().items())
    return f"{hardware()}; {packages}; load average {load()}."


def _say(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)  # noqa: T201
