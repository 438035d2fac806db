"""How plots look: colours that colour-blind readers can tell apart, and files that repeat."""

from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
"""Okabe and Ito's palette without its yellow, which is too pale for lines, and a brown."""
INK, RULE = "#1B1F24", "#DDDDDD"
"""Text and axes; grid. A page puts its own in their place, so nothing else has these colours."""
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)))
_MARKERS = "osD^vP*X"

_SETTINGS: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.hashsalt": "turnout",  # or every file would have other ids
    "svg.fonttype": "none",
}


class Look(NamedTuple):
    colour: str
    dashes: Any
    marker: str


def look(place: int) -> Look:
    """The look of the method that stands at `place` in the file."""
    turn = place // len(COLOURS)
    # Dashes differ between neighbours too, for prints in grey.
    dashes = _DASHES[(place + turn) % len(_DASHES)]
    return Look(COLOURS[place % len(COLOURS)], dashes, _MARKERS[place % len(_MARKERS)])


def series(place: int) -> str:
    """The gid of all that is drawn for the series at `place`; pages show and hide it by this."""
    return f"series-{place}"


class _Drawn(Figure):
    """A figure that notebooks show without any window system being set up."""

    def _repr_png_(self) -> bytes:
        image = BytesIO()
        with settings():
            self.savefig(image, dpi=90, metadata={"Software": None})
        return image.getvalue()


def figure(width: float = 8.0, height: float = 4.8) -> Figure:
    """An empty figure that belongs to no window and no global state."""
    return _Drawn(figsize=(width, height), layout="constrained")


def settings() -> Any:
    """The context in which figures are drawn and saved."""
    return matplotlib.rc_context(_SETTINGS)


def save(drawn: Figure, stem: Path) -> list[Path]:
    """Write PNG and SVG, without the date, so that equal runs have equal files."""
    paths = [stem.with_suffix(".png"), stem.with_suffix(".svg")]
    drawn.savefig(paths[0], dpi=150, metadata={"Software": None})
    drawn.savefig(paths[1], metadata={"Date": None})
    return paths
