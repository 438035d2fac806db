"""Engines: local training of a cohort. They compute gradients and decide the order of work."""

from collections.abc import Callable

from turnout.engine.allocator import keep_freed_memory
from turnout.engine.batched import Batched
from turnout.engine.contract import Engine, Training
from turnout.engine.reference import Reference
from turnout.engine.select import suited
from turnout.engine.threaded import Threaded
from turnout.errors import choose

ENGINES: dict[str, Callable[[Training], Engine]] = {
    "reference": Reference,
    "batched": Batched,
    "threaded": Threaded,
}


def choose_engine(name: str, training: Training) -> Engine:
    """The engine of this name; "auto" picks one for the model and the machine."""
    keep_freed_memory()
    if name == "auto":
        name = suited(training)
    return ENGINES[choose("engine", name, ENGINES)](training)
