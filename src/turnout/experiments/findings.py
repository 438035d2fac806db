"""What the numbers of the demo show, in sentences made from the numbers."""

from turnout.experiments.summary import Entry, Line, Summary


def findings(summary: Summary) -> list[str]:
    """Sentences on weights, on clients that never come, and on both remedies together."""
    sentences = [
        _against(summary, "FedAU", "average participating"),
        _never_seen(summary),
        _against(summary, "FedAU with SAFARI", "SAFARI"),
    ]
    return [sentence for sentence in sentences if sentence]


def _against(summary: Summary, one: str, other: str) -> str | None:
    """Is `one` better than `other`, and by more than the spread?"""
    first, second = summary.entry(one, "tail"), summary.entry(other, "tail")
    if first is None or second is None:
        return None
    gap = first.mean - second.mean
    return (
        f"Over the last {summary.tail} rounds {one} reaches {first.mean:.1f} % and {other} "
        f"{second.mean:.1f} %: {abs(gap):.1f} points {'more' if gap >= 0 else 'less'}, which is "
        f"{_verdict(gap, first, second)}."
    )


def _verdict(gap: float, first: Entry, second: Entry) -> str:
    if first.std is None or second.std is None:
        return "one seed's difference, without a spread to compare it with"
    spread = max(first.std, second.std)
    beyond = "more than" if abs(gap) > spread else "within"
    return f"{beyond} the spread over seeds ({spread:.1f})"


def _never_seen(summary: Summary) -> str | None:
    """What is the best that is done for clients that never come, with server data and without?"""
    assisted = [line for line in summary.lines if "SAFARI" in line.label]
    others = [line for line in summary.lines if line not in assisted]
    helped, alone = _best(assisted), _best(others)
    if helped is None or alone is None:
        return None
    (name, most), (_, least) = helped, alone
    if most <= least:
        return (
            f"Of the data of clients that never came, no method with the server's data gets more "
            f"right ({most:.1f} %) than the best without ({least:.1f} %)."
        )
    return (
        f"Of the data of clients that never came, no method without the server's data gets more "
        f"than {least:.1f} % right; {name} gets {most:.1f} %."
    )


def _best(lines: list[Line]) -> tuple[str, float] | None:
    found = [
        (line.label, line.entries["never_seen"].mean)
        for line in lines
        if "never_seen" in line.entries
    ]
    return max(found, key=lambda pair: pair[1]) if found else None
