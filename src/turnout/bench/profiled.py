"""Where the time of a workload goes: operations by torch's own account, and the rest."""

from dataclasses import replace
from time import perf_counter

import torch
from torch.profiler import ProfilerActivity, profile

from turnout.bench.workloads import Workload
from turnout.engine import Choice
from turnout.engine.batched import Batched
from turnout.engine.threaded import Threaded
from turnout.simulator import advance, begin

Shares = list[tuple[str, float]]

_MOST = 8
_KINDS = {
    "products": ("bmm", "baddbmm", "mm", "addmm", "matmul", "linear"),
    "convolutions": ("convolution", "mkldnn", "conv"),
    "pooling": ("max_pool",),
    "gathering mini-batches": ("index_select", "index", "copy_", "_to_copy"),
    "loss": ("softmax", "nll", "scatter", "cross_entropy"),
    "activations": ("relu", "threshold", "clamp"),
}


def where_time_goes(workload: Workload, seconds: float) -> Shares:
    """Shares of a round by kind of operation, with one worker and one thread."""
    simulation = workload.simulation("auto")
    kind = Threaded if isinstance(simulation.engine, Threaded) else Batched
    alone = kind(simulation.training, workers=1)
    simulation = replace(simulation, chosen=Choice(alone, simulation.chosen.name, "for a profile"))
    progress, threads = begin(simulation), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        advance(simulation, progress)
        began, rounds = perf_counter(), 0
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            while rounds < 2 or perf_counter() - began < seconds:
                advance(simulation, progress)
                rounds += 1
            took = perf_counter() - began
    finally:
        torch.set_num_threads(threads)
    sums: dict[str, float] = {}
    for event in profiler.key_averages():
        sums[event.key] = sums.get(event.key, 0.0) + event.self_cpu_time_total / 1e6
    return _shares(sums, took)


def _shares(sums: dict[str, float], took: float) -> Shares:
    """The largest kinds first; what is none of torch's operations is Python's.

    >>> _shares({"aten::bmm": 3.0, "aten::relu_": 1.0, "aten::div": 0.5}, took=5.0)
    [('products', 0.6), ('activations', 0.2), ('div', 0.1), ('Python, and drawing', 0.1)]
    """
    kinds: dict[str, float] = {}
    for name, seconds in sums.items():
        plain = name.removeprefix("aten::")
        kind = next((k for k, words in _KINDS.items() if any(w in plain for w in words)), plain)
        kinds[kind] = kinds.get(kind, 0.0) + seconds
    rest = max(0.0, took - sum(kinds.values()))
    ordered = sorted(kinds.items(), key=lambda item: -item[1])
    shares = [(name, seconds / took) for name, seconds in ordered[:_MOST]]
    return [*shares, ("Python, and drawing", round(rest / took, 6))]
