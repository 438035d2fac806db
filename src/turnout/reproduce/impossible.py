"""SAFARI's Theorem 1 played out: the risk without, and with, data at the server."""

from typing import Any

from matplotlib.figure import Figure

from turnout.experiments.style import figure, look, settings
from turnout.reproduce.judge import MARKS, Entry, Printed, Verdict
from turnout.reproduce.origin import origin
from turnout.reproduce.report import Report
from turnout.reproduce.request import Request
from turnout.reproduce.values import measured
from turnout.theory.impossibility import simulate_impossibility

CLAIM = 100 / 20
"""P[risk > (1−ω)/8] > 1/20, in %."""


def impossible(request: Request) -> Report:
    """The construction for each number of participating clients."""
    chosen = dict(request.item.settings) | dict(request.item.settings.get(request.scale, {}))
    clients, samples, repeats = chosen["clients"], chosen["samples"], chosen["repeats"]
    rows, entries, shown = (
        [],
        [],
        [["ω = m/M", "(1−ω)/8", "clients only", "with server data", "hidden", ""]],
    )
    for participating in chosen["participating"]:
        outcome = simulate_impossibility(
            clients, participating, samples, chosen["server_samples"], repeats
        )
        alone, helped = (100 * share for share in outcome.exceeding)
        holds: Verdict = "matches" if alone > CLAIM else "differs"
        label = f"ω={participating / clients:g}"
        why = f"the theorem wants more than {CLAIM:g} % without the server's data"
        entries.append(
            Entry(
                label,
                "",
                measured([alone]),
                Printed(CLAIM),
                holds,
                why if holds == "differs" else "",
            )
        )
        in_closed_form = [100 * share for share in outcome.expected]
        rows.append(
            {
                "capacity": participating / clients, "epsilon": outcome.epsilon,
                "exceeding_clients_only": alone, "exceeding_with_server": helped,
                "closed_form_clients_only": in_closed_form[0],
                "closed_form_with_server": in_closed_form[1],
                "hidden": 100 * outcome.hidden, "repeats": repeats, "verdict": holds,
            }
        )  # fmt: skip
        shown.append(
            [
                label,
                f"{outcome.epsilon:.4g}",
                f"{alone:.2f} % ({in_closed_form[0]:.2f})",
                f"{helped:.2f} % ({in_closed_form[1]:.2f})",
                f"{100 * outcome.hidden:.1f} %",
                MARKS[holds],
            ]
        )
    notes = ["In brackets: the closed form. The claim: more than 5 % for clients only."]
    return Report(
        request,
        shown,
        rows,
        entries,
        _figure(rows),
        notes,
        origin(),
    )


def _figure(rows: list[dict[str, Any]]) -> Figure:
    with settings():
        drawn = figure(6.4, 4.2)
        axes = drawn.subplots()
        x = [row["capacity"] for row in rows]
        for place, (key, label) in enumerate(
            (("clients_only", "participating clients only"), ("with_server", "with server data"))
        ):
            style = look(place)
            axes.plot(
                x, [row[f"exceeding_{key}"] for row in rows], color=style.colour,
                marker=style.marker, linestyle=style.dashes, label=label,
            )  # fmt: skip
        axes.axhline(CLAIM, color="#999999", linewidth=1, label="1/20, the theorem's bound")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("capacity ω = m/M")
        axes.set_ylabel("P[ risk > (1−ω)/8 ]  (%)")
        axes.legend()
        return drawn
