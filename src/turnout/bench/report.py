"""Tables of what was measured, and ratios: as text for a terminal, as Markdown for a file."""

from collections.abc import Sequence

from turnout.bench.measure import Measured, Timing
from turnout.bench.population import Bookkeeping

Table = list[list[str]]

HEADS = ["", "ms a round", "client-steps/s", "of the peak", "peak memory", "time / turnout's"]
GOALS = {"a": 5.0, "b": 1.5, "c": 5.0}
"""How many times as fast as pfl at its best turnout means to be, at least."""


def table(measured: Measured) -> Table:
    """A row a contestant: its best, and how it stands to turnout's."""
    ours = measured.best_of("turnout")
    return [HEADS, *(_row(timing, measured, ours) for timing in measured.timings)]


def _row(timing: Timing, measured: Measured, ours: Timing | None) -> list[str]:
    name = timing.contestant.name
    if not timing.turns:
        return [name, timing.trouble or "–", "", "", "", ""]
    rate = measured.workload.client_steps / timing.best
    share = measured.flops / timing.best / measured.peak if measured.peak else 0.0
    memory = f"{timing.memory / 2**20:,.0f} MB" if timing.memory else "–"
    ratio = f"{timing.best / ours.best:.2f}" if ours else "–"
    percent = f"{100 * share:.0f} %" if share else "–"
    return [name, f"{1e3 * timing.best:,.1f}", f"{rate:,.0f}", percent, memory, ratio]


def heading(measured: Measured) -> str:
    workload = measured.workload
    return f"({workload.key}) {workload.title}"


def facts(measured: Measured) -> str:
    peak, best = measured.peak, max(measured.peak, measured.our_peak)
    limit = 1e3 * measured.flops / best if best else float("nan")
    text = (
        f"{measured.flops / 1e9:.2f} GFLOP a round; torch's own products reach {peak / 1e9:.0f} GFLOP/s "
        f"here, and as engines take them {best / 1e9:.0f}, so a round takes {limit:.1f} ms at least."
    )
    ours = measured.best_of("turnout")
    return f"{text} turnout chose {ours.note}." if ours and ours.note else text


def ratios(everything: Sequence[Measured]) -> list[str]:
    """turnout's time against each other side's best, in sentences."""
    said = []
    for measured in everything:
        ours = measured.best_of("turnout")
        if ours is None:
            continue
        for side in ("pfl", "Flower", "reference"):
            other = measured.best_of(side)
            if other is None:
                continue
            times = other.best / ours.best
            sentence = (
                f"({measured.workload.key}) turnout takes 1/{times:.1f} of the time of "
                f"{other.contestant.name}: {1e3 * ours.best:.1f} ms a round against "
                f"{1e3 * other.best:.1f}"
            )
            goal = GOALS[measured.workload.key]
            if side == "pfl":
                reached = "reached" if times >= goal else "missed"
                sentence += f" (at most 1/{goal:g} was meant: {reached})"
            said.append(sentence + ".")
    return said


POPULATION_HEADS = [
    "clients",
    "come",
    "mask, ms",
    "weights, ms",
    "bytes a client",
    "round of 1000, ms",
]


def population_table(found: Sequence[Bookkeeping]) -> Table:
    rows = [
        [
            f"{each.clients:,}",
            f"{each.here:,.0f}",
            f"{1e3 * each.mask:.3f}",
            f"{1e3 * each.weights:.3f}",
            f"{each.bytes_each:.0f}",
            f"{1e3 * each.of_a_thousand:.3f}",
        ]
        for each in found
    ]
    return [POPULATION_HEADS, *rows]


def as_text(rows: Table) -> str:
    """Columns aligned, numbers to the right.

    >>> print(as_text([["", "ms"], ["turnout", "7.0"], ["pfl", "59.0"]]))
               ms
    turnout   7.0
    pfl      59.0
    """
    widths = [max(len(row[k]) for row in rows if len(row) > k) for k in range(len(rows[0]))]
    lines = []
    for row in rows:
        first, *rest = [
            text.ljust(width) if k == 0 else text.rjust(width)
            for k, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join([first, *rest]).rstrip())
    return "\n".join(lines)


def as_markdown(rows: Table) -> str:
    """A table as Markdown.

    >>> print(as_markdown([["", "ms"], ["turnout", "7.0"]]))
    |  | ms |
    |:---|---:|
    | turnout | 7.0 |
    """
    head, *rest = rows
    rule = "|:---|" + "---:|" * (len(head) - 1)
    return "\n".join(
        ["| " + " | ".join(head) + " |", rule, *("| " + " | ".join(row) + " |" for row in rest)]
    )
