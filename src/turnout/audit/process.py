"""Which process fits the log: independent rounds, spells, a cycle, or rates that change."""

from dataclasses import dataclass, field
from math import erfc, sqrt

import numpy as np
from numpy.typing import NDArray

from turnout.audit.changes import Change, change, trend
from turnout.audit.history import History
from turnout.audit.lines import Peak, line, slow
from turnout.audit.period import Period, period_of
from turnout.audit.rates import arrivals, correlation
from turnout.audit.spectrum import Spectrum, spectrum
from turnout.audit.transitions import Chain, chain
from turnout.draws import generator

LEVEL = 0.01
_CLIENTS = 2000
_CELLS = 40_000_000
_ROUNDS = 8

MEANINGS = {
    "too short": "the log is too short for patterns over time",
    "constant": "every client comes always or never: nothing varies",
    "independent": "each client comes with its own chance, whatever the rounds before",
    "markov": "clients stay for spells: whether one comes depends on the round before",
    "cyclic": "the same clients come at the same place of every cycle",
    "regularised": "every client comes equally often in each cycle, at changing places",
    "periodic": "chances rise and fall over a cycle",
    "daily": "chances rise and fall over the day",
    "non-stationary": "chances change for good over the log",
}


@dataclass(frozen=True)
class Test:
    """One simpler explanation, and whether it is rejected."""

    null: str
    statistic: str
    value: float
    p: float
    rejected: bool = False
    """By Holm's procedure over all tests made, at level 0.01 together."""


@dataclass(frozen=True, eq=False)
class Fit:
    name: str
    """One of `MEANINGS`: the first that applies."""
    also: tuple[str, ...]
    """What else was found beside it."""
    tests: tuple[Test, ...]
    chain: Chain | None
    period: Period | None
    changes: tuple[Change, ...]
    clients_used: int
    notes: tuple[str, ...] = field(default=())
    spectrum: Spectrum | None = None
    """What was searched for a cycle; None where that was not needed."""

    @property
    def meaning(self) -> str:
        return MEANINGS[self.name]


def fit(history: History, seed: int = 0) -> Fit:
    """Name the process. What it takes to be right is in the documentation of the audit.

    >>> from turnout.participation import bernoulli, cyclic
    >>> from turnout.audit.history import from_mask
    >>> fit(from_mask(bernoulli(0.3, clients=50).mask(400))).name
    'independent'
    >>> found = fit(from_mask(cyclic(0.2, clients=50, period=40).mask(400)))
    >>> found.name, found.period.rounds
    ('cyclic', 40.0)
    """
    k = history.counts
    varied = np.flatnonzero((k > 0) & (k < history.rounds))
    if not len(varied) or history.rounds < _ROUNDS:
        name = "too short" if len(varied) else "constant"
        return Fit(name, (), (), None, None, (), 0)
    most = int(min(_CLIENTS, max(20, _CELLS // history.rounds)))
    rows = varied
    if len(varied) > most:
        rows = np.sort(generator(seed, "audit sample").permutation(varied)[:most])
    table, memory = history.dense(rows), correlation(history)[rows]
    if is_regularised(history):
        only = (_memory(history, varied),)
        return Fit("regularised", (), only, chain(history), None, (), len(rows), _notes(history))
    searched = whole = spectrum(table, memory)
    peak = line(whole)
    cycle = None if peak is None else period_of(whole, peak)
    drift: Peak | None = None
    changes: tuple[Change, ...] = ()
    if cycle is None or not cycle.exact:
        drift = _slow(table, memory, cycle)
        if drift is not None and drift.p < LEVEL:
            # A step has power at every frequency: look for a cycle in what it leaves.
            changes = _changes(table, memory, cycle)
            moved = trend(history.rounds, [each.round for each in changes])
            searched = spectrum(table, memory, moved)
            peak = line(searched)
            cycle = None if peak is None else period_of(searched, peak)
    found = None if cycle is None else peak
    tests = holm(
        [
            _memory(history, varied),
            _test("no cycle", "power of a frequency over its surroundings", found),
            _test("no change of rates", "power of slow changes over what follows", drift),
        ]
    )
    rejected = {test.null for test in tests if test.rejected}
    cycle = cycle if "no cycle" in rejected else None
    names = _names(rejected, cycle, history.round_s)
    return Fit(
        name=names[0],
        also=tuple(names[1:]),
        tests=tuple(tests),
        chain=chain(history),
        period=cycle,
        changes=changes if "non-stationary" in names else (),
        clients_used=len(rows),
        notes=_notes(history),
        spectrum=searched,
    )


def _names(rejected: set[str], cycle: Period | None, round_s: float | None) -> list[str]:
    names = []
    if cycle is not None:
        daily = round_s is not None and abs(cycle.rounds * round_s / 86400 - 1) < 0.1
        names.append("cyclic" if cycle.exact else "daily" if daily else "periodic")
    if "no change of rates" in rejected:
        names.append("non-stationary")
    if "rounds are independent" in rejected and (cycle is None or not cycle.exact):
        names.append("markov")
    return names or ["independent"]


def _memory(history: History, rows: NDArray[np.int64]) -> Test:
    """Wald and Wolfowitz's test of runs, pooled.

    Given how often each client came, every order is as likely as every other if rounds are
    independent, and its number of spells has the mean k(T−k+1)/T and the variance
    k(k−1)(T−k)(T−k+1)/(T²(T−1)).
    """
    T = float(history.rounds)
    k, spells = history.counts[rows].astype(np.float64), arrivals(history)[rows]
    mean = k * (T - k + 1) / T
    variance = k * (k - 1) * (T - k) * (T - k + 1) / (T**2 * (T - 1))
    z = float((mean - spells).sum() / max(sqrt(variance.sum()), 1e-12))
    statistic = "z of runs (above 0: fewer and longer spells)"
    return Test("rounds are independent", statistic, z, erfc(abs(z) / sqrt(2)))


def _test(null: str, statistic: str, peak: Peak | None) -> Test:
    return (
        Test(null, statistic, 1.0, 1.0)
        if peak is None
        else Test(null, statistic, peak.ratio, peak.p)
    )


def _slow(
    table: NDArray[np.bool_], memory: NDArray[np.float64], cycle: Period | None
) -> Peak | None:
    if cycle is None:
        return slow(spectrum(table, memory))
    # Whole cycles only: then the cycle's power falls on frequencies of its own.
    cycles = int(table.shape[1] / cycle.rounds)
    part = table[:, : round(cycles * cycle.rounds)]
    return slow(spectrum(part, memory), avoid=cycles)


def holm(tests: list[Test], level: float = LEVEL) -> list[Test]:
    """Holm's procedure: the smallest p at level/m, the next at level/(m − 1), … until one fails.

    >>> made = [Test("a", "", 0, 0.004), Test("b", "", 0, 0.2), Test("c", "", 0, 0.006)]
    >>> [test.rejected for test in holm(made)]
    [False, False, False]
    """
    out, order = list(tests), sorted(range(len(tests)), key=lambda i: tests[i].p)
    for rank, place in enumerate(order):
        if tests[place].p > level / (len(tests) - rank):
            break
        test = tests[place]
        out[place] = Test(test.null, test.statistic, test.value, test.p, True)
    return out


def is_regularised(history: History) -> bool:
    """Every client exactly once in each window of P rounds, P from the mean rate."""
    total = int(history.counts.sum())
    cycle = round(history.rounds * history.clients / max(total, 1))
    windows = history.rounds // max(cycle, 1)
    if cycle < 2 or windows < 3:
        return False
    inside = history.round < windows * cycle
    key = history.client[inside].astype(np.int64) * windows + history.round[inside] // cycle
    once = (
        bool((np.bincount(key, minlength=history.clients * windows) == 1).all())
        if len(key)
        else False
    )
    # A client in step with the windows is cyclic, which says more.
    place = history.round[inside] % cycle
    same = bool(
        (place[1:] == place[:-1])[history.client[inside][1:] == history.client[inside][:-1]].all()
    )
    return once and not same


def _changes(
    table: NDArray[np.bool_], memory: NDArray[np.float64], cycle: Period | None, depth: int = 3
) -> tuple[Change, ...]:
    """The best change, and those of the parts before and after a step, while they are significant.

    Beside a cycle only the best: a part of the log has too few cycles to tell the two apart.
    """
    found = change(table)
    if found.kind == "drift" or depth == 0 or cycle is not None:
        return (found,)
    out: list[Change] = []
    for begin, part in ((0, table[:, : found.round]), (found.round, table[:, found.round :])):
        peak = _slow(part, memory, None) if part.shape[1] >= 64 else None
        if peak is not None and peak.p < LEVEL / 8:
            inner = _changes(part, memory, None, depth - 1)
            out += [each._replace(round=each.round + begin) for each in inner]
    return tuple(sorted([found, *out]))


def _notes(history: History) -> tuple[str, ...]:
    notes = []
    k = history.counts
    if history.rounds < 200:
        notes.append("fewer than 200 rounds: slow patterns cannot be told from chance")
    if int(k.sum()) < 500:
        notes.append("fewer than 500 participations: only strong patterns can be seen")
    memory = correlation(history)[(k > 0) & (k < history.rounds)]
    if len(memory) and 50 / history.rounds > 1 - float(np.median(memory)):
        notes.append("spells last more than a fiftieth of the log: they look like changes of rates")
    return tuple(notes)
