"""The audit on a terminal."""

from collections.abc import Iterable

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from turnout.audit.audit import Audit
from turnout.audit.process import LEVEL
from turnout.audit.recommend import Method

Pairs = Iterable[tuple[str, str]]


def show(found: Audit, console: Console) -> None:
    """Print who shows up, which process fits, what that does, and what to run."""
    for title, body in (
        ("The log", _pairs(_log(found))),
        ("Who shows up", _pairs(_who(found))),
        ("Which process", _process(found)),
        ("What it does under plain averaging", _impact(found)),
        ("What to run", _advice(found)),
    ):
        console.print(Text(title, style="bold"))
        console.print(Padding(body, (0, 0, 1, 2)))


def _pairs(pairs: Pairs) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for left, right in pairs:
        table.add_row(Text(left), Text(right))
    return table


def _log(found: Audit) -> Pairs:
    history = found.history
    yield "clients", f"{history.clients:,}"
    length = "" if history.round_s is None else f" of {_time(history.round_s)}"
    yield "rounds", f"{history.rounds:,}{length}"
    yield "participations", f"{len(history.round):,}"
    for what, count in history.mends.items():
        yield "mended", f"{count:,} {what}"


def _who(found: Audit) -> Pairs:
    federation, rates = found.federation, found.rates
    yield "mean rate", f"{federation.mean_rate:.1%}"
    spread = [f"{label} {rate:.1%}" for label, rate in federation.rate_percentiles.items()]
    yield "rates", ", ".join(spread)
    width = float(np.median(rates.high - rates.low))
    yield "known to", f"±{width / 2:.1%} for the median client ({rates.confidence:.0%} intervals)"
    yield "Gini of rates", f"{federation.gini:.2f}"
    listed = federation.never_seen - federation.never_listed
    more = f" ({federation.never_listed:,} without any entry, {listed:,} with entries, yet in no round)"
    yield "never seen", f"{federation.never_seen:,}" + (more if listed else "")
    yield "seen once", f"{federation.once_seen:,}"
    yield (
        "a round",
        f"{federation.mean_per_round:.4g} on average, worth {federation.effective_per_round:.4g}; "
        f"none in {federation.empty_rounds:,} rounds",
    )
    yield "worth", f"{federation.effective_clients:.4g} clients that come equally often"
    if federation.lost is not None:
        yield "lost", f"{federation.lost:.1%} of those asked never delivered"
    if found.gaps.overall:
        spread = [f"{label} {length:.4g}" for label, length in found.gaps.overall.items()]
        yield "gaps", ", ".join(spread) + " rounds from one participation to the next"


def _process(found: Audit) -> RenderableType:
    fit = found.fit
    head = Text.assemble((fit.name, "bold"), f": {fit.meaning}")
    if fit.also:
        head.append(f" (and {', '.join(fit.also)})")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("simpler explanation", no_wrap=True)
    table.add_column("statistic", justify="right")
    table.add_column("p", justify="right")
    table.add_column(f"at level {LEVEL:g} (Holm)")
    for test in fit.tests:
        p = f"{test.p:.2g}" if test.p >= 1e-99 else "< 1e-99"
        table.add_row(test.null, f"{test.value:.4g}", p, "rejected" if test.rejected else "stands")
    return Group(head, table, _pairs(_fitted(found))) if fit.tests else Group(head)


def _fitted(found: Audit) -> Pairs:
    fit, round_s = found.fit, found.history.round_s
    if fit.period is not None:
        period = fit.period
        text = f"{period.rounds:.4g} rounds"
        if not period.exact:
            text += f" ({period.low:.4g} to {period.high:.4g})"
        if round_s is not None:
            text += f", {_time(period.rounds * round_s)}"
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
        yield "change", f"{where}; rates moved by {each.moved:.1%} on average"
    for note in fit.notes:
        yield "note", note


def _impact(found: Audit) -> RenderableType:
    objective, classes = found.impact.objective, found.impact.classes
    ratio = objective.ratio
    high = int(ratio.argmax())
    seen = objective.shares > 0
    low = int(np.where(seen, ratio, np.inf).argmin())
    name = found.history.name
    pairs = [
        ("misplaced", f"{objective.total_variation:.1%} of the objective (total variation)"),
        ("by chance", f"{found.impact.by_chance:.1%} would be if all rates were equal"),
        ("never heard", f"{objective.missing:.2%} of the objective"),
        ("heard too much", f"client {name(high)}, {ratio[high]:.3g} times what was intended"),
        ("heard too little", f"client {name(low)}, {ratio[low]:.3g} times, of those that came"),
    ]
    if classes is None:
        return _pairs(pairs)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("class", "intended", "implicit", "ratio", "held by never seen", ""):
        table.add_column(title, justify="left" if title in ("class", "") else "right")
    for k, label in enumerate(classes.names[:40]):
        risk = "at risk" if k in classes.at_risk else ""
        cells = (classes.intended[k], classes.implicit[k])
        unseen = f"{classes.unseen[k]:.1%}"
        table.add_row(label, *(f"{c:.1%}" for c in cells), f"{classes.ratio[k]:.2f}", unseen, risk)
    pairs.append(("classes", f"{classes.total_variation:.1%} misplaced among classes"))
    return Group(_pairs(pairs), table)


def _advice(found: Audit) -> RenderableType:
    advice = found.advice
    lines = [Text.assemble((advice.method.label, "bold"), _settings(advice.method))]
    table = Table.grid(padding=(0, 1))
    table.add_column()
    table.add_column(overflow="fold")
    for line in (*advice.reasons, *advice.costs):
        table.add_row("–", Text(line))
    return Group(*lines, table)


def _settings(method: Method) -> str:
    table = method.table()
    table.pop("name")
    inside = table.pop("inner", None)
    if inside is not None:
        table |= {key: value for key, value in inside.items() if key not in ("name", "inner")}
    return f" ({', '.join(f'{k} = {v}' for k, v in table.items())})" if table else ""


def _time(seconds: float) -> str:
    """As people say it.

    >>> _time(600), _time(86000)
    ('10 min', '23.9 h')
    """
    for unit, length in (("h", 3600.0), ("min", 60.0)):
        if seconds >= length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} s"
