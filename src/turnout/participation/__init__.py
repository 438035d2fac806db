"""Who shows up when: processes that belong to the world, never to an algorithm."""

from collections.abc import Callable

from turnout.participation.always import always
from turnout.participation.arrivals import arrivals
from turnout.participation.bernoulli import bernoulli
from turnout.participation.cyclic import cyclic
from turnout.participation.drift import sine_drift, step_drift
from turnout.participation.exclusion import excluded
from turnout.participation.export import export, load
from turnout.participation.given import given
from turnout.participation.grouped import grouped, regularised
from turnout.participation.log import Log, from_mask, record, sized
from turnout.participation.lossy import lossy
from turnout.participation.markov import markov
from turnout.participation.process import Attendance, Participation, Rows, State
from turnout.participation.rates import class_rates
from turnout.participation.sampled import sampled
from turnout.participation.summary import Summary, summarise
from turnout.participation.trace import trace
from turnout.participation.uniform import uniform

PROCESSES: dict[str, Callable[..., Participation]] = {
    constructor.__name__: constructor
    for constructor in (
        always,
        uniform,
        bernoulli,
        markov,
        cyclic,
        grouped,
        regularised,
        sampled,
        excluded,
        lossy,
        sine_drift,
        step_drift,
        trace,
        arrivals,
        given,
    )
}
"""Constructors by name; the first line of each docstring says what it makes."""

__all__ = [
    "PROCESSES",
    "Attendance",
    "Log",
    "Participation",
    "Rows",
    "State",
    "Summary",
    "always",
    "arrivals",
    "bernoulli",
    "class_rates",
    "cyclic",
    "excluded",
    "export",
    "from_mask",
    "given",
    "grouped",
    "load",
    "lossy",
    "markov",
    "record",
    "regularised",
    "sampled",
    "sine_drift",
    "sized",
    "step_drift",
    "summarise",
    "trace",
    "uniform",
]
