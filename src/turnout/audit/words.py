"""What the audit says, in words: the terminal and the page lay out the same lines."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from turnout.audit.audit import Audit
from turnout.audit.process import MEANINGS, Test
from turnout.audit.recommend import Method

Pairs = Iterator[tuple[str, str]]

_NAMED = 5
"""So many clients are called by name."""


def verdict(found: Audit) -> str:
    """Who shows up, what that does, and what to run, in three sentences."""
    history, federation, objective = found.history, found.federation, found.impact.objective
    never = federation.never_seen
    middle = federation.rate_percentiles["median"]
    who = (
        f"{_count(history.clients, 'client')} over {_count(history.rounds, 'round')}"
        f"{_each(found)}: {found.fit.meaning}; the median client comes in {percent(middle)} of rounds"
        + (f", and {never:,} never" if never else "")
        + "."
    )
    what = (
        f"Plain averaging would put {percent(objective.total_variation, 0)} of the objective's weight "
        "in the wrong place"
    )
    classes = found.impact.classes
    if classes is not None and classes.at_risk:
        what += ", with " + _few([classes.names[k] for k in classes.at_risk], "class", "classes")
        what += " at risk"
    advice = found.advice
    return f"{who} {what}. To run: {advice.method.label}{settings(advice.method)}."


def log(found: Audit) -> Pairs:
    history = found.history
    if found.source is not None:
        yield "file", found.source
    yield "clients", f"{history.clients:,}"
    yield "rounds", f"{history.rounds:,}{_each(found)}"
    yield "participations", f"{len(history.round):,}"
    for what, count in history.mends.items():
        yield "mended", f"{count:,} {what}"


def who(found: Audit) -> Pairs:
    federation, rates, history = found.federation, found.rates, found.history
    yield "mean rate", f"{percent(federation.mean_rate)} of rounds"
    low, tenth, half, most, high = map(percent, federation.rate_percentiles.values())
    yield (
        "rates",
        f"{low} to {high}; a tenth of the clients up to {tenth}, half up to {half}, nine tenths up to "
        f"{most}",
    )
    width = float(np.median(rates.high - rates.low))
    yield (
        "known to",
        f"±{100 * width / 2:.1f} points for the median client ({percent(rates.confidence, 0)} intervals; "
        "spells and days tell less than independent rounds)",
    )
    yield "Gini of rates", f"{federation.gini:.2f} (0: all alike, towards 1: a few do everything)"
    yield (
        "effective clients",
        f"{federation.effective_clients:.4g}: so many that come equally often would do as much",
    )
    yield "never seen", _never(found)
    once = np.flatnonzero(history.counts == 1)
    yield "seen once", f"{len(once):,}" + _which(found, once)
    yield (
        "clients a round",
        f"{federation.mean_per_round:.4g} on average; averages vary as with "
        f"{federation.effective_per_round:.4g} every round; nobody in {federation.empty_rounds:,} rounds",
    )
    if federation.lost is not None:
        yield "lost", f"{percent(federation.lost)} of those asked never delivered"
    if found.gaps.overall:
        of = found.gaps.overall
        yield (
            "gaps",
            f"{of['mean']:.3g} rounds on average from one participation to the next; half up to "
            f"{of['median']:g}, 90 % up to {of['90 %']:g}, 99 % up to {of['99 %']:g}, the longest "
            f"{of['longest']:g}",
        )


def _never(found: Audit) -> str:
    federation = found.federation
    text = f"{federation.never_seen:,}"
    listed = federation.never_seen - federation.never_listed
    if listed:
        text += f" ({federation.never_listed:,} without any entry, {listed:,} with entries, yet in no round)"
    return text + _which(found, np.flatnonzero(found.history.counts == 0))


def _which(found: Audit, rows: NDArray[np.int64]) -> str:
    names = [found.history.name(row) for row in rows[: _NAMED + 1].tolist()]
    if not names:
        return ""
    return ": " + ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")


def process(found: Audit) -> Pairs:
    """The name of the process and what it means, and what else was found beside it."""
    fit = found.fit
    yield fit.name, fit.meaning
    for name in fit.also:
        yield name, f"besides, {MEANINGS[name]}"


def tested(test: Test) -> tuple[str, str, str, str]:
    """A row of the table of tests."""
    p = f"{test.p:.2g}" if test.p >= 1e-99 else "< 1e-99"
    return test.null, f"{test.value:.4g}", p, "rejected" if test.rejected else "stands"


def fitted(found: Audit) -> Pairs:
    fit, round_s = found.fit, found.history.round_s
    if fit.period is not None:
        period = fit.period
        text = f"{period.rounds:.4g} rounds"
        if not period.exact:
            text += f" ({period.low:.4g} to {period.high:.4g})"
        if round_s is not None:
            text += f", {duration(period.rounds * round_s)}"
        yield "period", text
    if fit.chain is not None and "markov" in (fit.name, *fit.also):
        join, leave = fit.chain.join, fit.chain.leave
        yield "off→on", f"{join.value:.3g} ({join.low:.3g} to {join.high:.3g}) a round"
        yield "on→off", f"{leave.value:.3g} ({leave.low:.3g} to {leave.high:.3g}) a round"
        yield "spells", f"{fit.chain.spell:.3g} rounds on average"
    for each in fit.changes:
        where = (
            f"around round {each.round:,}" if each.kind == "step" else "gradual, no single round"
        )
        yield "change", f"{where}; rates moved by {100 * each.moved:.1f} points on average"
    for note in fit.notes:
        yield "note", note


def effect(found: Audit) -> Pairs:
    objective, name = found.impact.objective, found.history.name
    ratio, seen = objective.ratio, objective.shares > 0
    high, low = int(ratio.argmax()), int(np.where(seen, ratio, np.inf).argmin())
    yield (
        "in the wrong place",
        f"{percent(objective.total_variation)} of the weight (total variation from what is intended)",
    )
    yield (
        "by chance",
        f"{percent(found.impact.by_chance)} would be, if all clients came equally often",
    )
    yield "never heard", f"{percent(objective.missing)} of the objective"
    yield "heard too much", f"client {name(high)}, {ratio[high]:.3g} times what was intended"
    yield "heard too little", f"client {name(low)}, {ratio[low]:.3g} times, of those that came"
    classes = found.impact.classes
    if classes is not None:
        yield (
            "among classes",
            f"{percent(classes.total_variation)} of the weight in the wrong place",
        )
        worst = classes.names[classes.worst]
        yield "worst class", f"{worst}, {classes.ratio[classes.worst]:.2g} times what was intended"


CLASS_HEADS = ("class", "intended", "implicit", "ratio", "held by never seen", "")


def class_rows(found: Audit, most: int) -> Iterator[tuple[str, ...]]:
    """A row a class, those first that are heard least."""
    classes = found.impact.classes
    if classes is None:
        return
    for k in np.argsort(classes.ratio, kind="stable")[:most].tolist():
        shares = (classes.intended[k], classes.implicit[k])
        yield (
            classes.names[k],
            *(percent(share) for share in shares),
            f"{classes.ratio[k]:.2f}",
            percent(classes.unseen[k]),
            "at risk" if k in classes.at_risk else "",
        )


def settings(method: Method) -> str:
    """The settings of a method and of the one inside it, in brackets."""
    table = method.table()
    table.pop("name")
    inside = table.pop("inner", None)
    if inside is not None:
        table |= {key: value for key, value in inside.items() if key not in ("name", "inner")}
    return f" ({', '.join(f'{k} = {v}' for k, v in table.items())})" if table else ""


def percent(share: float, digits: int = 1) -> str:
    """As people write it.

    >>> percent(0.1234), percent(0.00012), percent(0)
    ('12.3 %', '0.012 %', '0.0 %')
    """
    small = 0 < abs(100 * share) < 10.0**-digits
    return f"{100 * share:.2g} %" if small else f"{100 * share:.{digits}f} %"


def duration(seconds: float) -> str:
    """As people say it.

    >>> duration(600), duration(86000)
    ('10 min', '23.9 h')
    """
    for unit, length in (("h", 3600.0), ("min", 60.0)):
        if seconds >= length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} s"


def _each(found: Audit) -> str:
    return "" if found.history.round_s is None else f" of {duration(found.history.round_s)}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _few(names: list[str], one: str, several: str) -> str:
    shown = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
    return f"{one if len(names) == 1 else several} {shown}"
