"""How each kind of item is reproduced."""

from collections.abc import Callable
from functools import partial

from turnout.reproduce import trained
from turnout.reproduce.impossible import impossible
from turnout.reproduce.leaderboard import leaderboard
from turnout.reproduce.panels import panels
from turnout.reproduce.report import Report
from turnout.reproduce.request import Request
from turnout.reproduce.search import search
from turnout.reproduce.weights import weights

KINDS: dict[str, Callable[[Request], Report]] = {
    "table": trained.trained,
    "curves": partial(trained.trained, draw=trained.curves),
    "lines": partial(trained.trained, draw=trained.lines),
    "spread": partial(trained.trained, draw=trained.spread),
    "panels": panels,
    "weights": weights,
    "search": search,
    "impossibility": impossible,
    "leaderboard": leaderboard,
}


def reproduce(request: Request) -> Report:
    """Run whatever of the item has not been run yet, and lay it out beside the paper."""
    return KINDS[request.item.about.kind](request)
