"""Figures of matplotlib as SVG inside a page, in the page's colours and its type."""

import io
import json
import re
from html import escape
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from turnout.experiments.style import COLOURS, INK, RULE, look, settings
from turnout.experiments.style import series as series

Floats = NDArray[np.float64]

_SERIES = series(0).removesuffix("0")
_POINTS = 72  # SVG's unit is a point


def drawing(drawn: Figure, prefix: str, says: str, read: str = "") -> str:
    """The figure as an SVG element, with what reads it; `prefix` keeps its ids apart from others'."""
    text = io.StringIO()
    with settings():  # text stays text: readable aloud, and in the page's own type
        drawn.savefig(text, format="svg", dpi=_POINTS, transparent=True, metadata={"Date": None})
    svg = _tidy(text.getvalue(), prefix, says)
    return svg + (_reader(drawn, prefix, read) if read else "")


def _tidy(svg: str, prefix: str, says: str) -> str:
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    box = re.search(r'viewBox="[^"]+"', svg)
    assert box is not None  # matplotlib writes one
    width = box.group().split()[2]
    head = (
        f'<svg {box.group()} role="img" aria-label="{escape(says)}" '
        f'style="--width:{width}" class="drawing" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    svg = head + svg[svg.index(">") + 1 :]
    svg = re.sub(rf'id="({_SERIES}\d+)"', r'class="\1"', svg)
    wanted = set(re.findall(r'(?:href="|url\()#([^")]+)', svg))
    svg = re.sub(r' id="([^"]+)"', lambda m: m.group() if m.group(1) in wanted else "", svg)
    for mark in (' id="', 'href="#', "url(#"):
        svg = svg.replace(mark, f"{mark}{prefix}-")
    svg = re.sub(r"font: ([^;\"']*px)[^;\"]*('[^;\"]*)?", r"font: \1 var(--type)", svg)
    svg = re.sub(r"font-family: [^;\"]*", "font-family: var(--type)", svg)
    svg = re.sub(r"\d+\.\d{3,}", lambda m: f"{float(m.group()):.2f}", svg)  # of a point
    return _coloured(re.sub(r"\n\s*", "\n", svg))


def _coloured(svg: str) -> str:
    """The page's colours in the place of ours, which are made for white paper."""
    svg = re.sub(INK, "currentColor", svg, flags=re.IGNORECASE)
    svg = re.sub(RULE, "var(--rule)", svg, flags=re.IGNORECASE)
    for place, colour in enumerate(COLOURS):
        svg = re.sub(colour, f"var(--series-{place})", svg, flags=re.IGNORECASE)
    return svg


def swatch(place: int) -> str:
    """A short line in the look of a series, for toggles and tables."""
    style = look(place)
    colour = f"var(--series-{COLOURS.index(style.colour)})"
    dashes = ""
    if not isinstance(style.dashes, str):
        dashes = f' stroke-dasharray="{" ".join(f"{2 * d:g}" for d in style.dashes[1])}"'
    return (
        '<svg class="swatch" viewBox="0 0 24 8" aria-hidden="true">'
        f'<line x1="0" x2="24" y1="4" y2="4" stroke="{colour}" stroke-width="3"{dashes}/></svg>'
    )


def _reader(drawn: Figure, prefix: str, read: str) -> str:
    """A slider along the first plot's x axis that says what its labelled lines are there."""
    axes = drawn.axes[0]
    lines = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
    if not lines:
        return ""
    longest = max(lines, key=lambda line: len(np.asarray(line.get_xdata())))
    at = np.asarray(longest.get_xdata(), dtype=float)
    if len(at) < 2:
        return ""
    unit = re.search(r"\(([^)]*)\)$", axes.get_ylabel())
    data: dict[str, Any] = {
        "x": [_short(x) for x in at],
        "series": [
            [str(line.get_gid() or "").removeprefix(_SERIES), line.get_label(), _values(line, at)]
            for line in lines
        ],
        "unit": f" {unit.group(1)}" if unit else "",
        "box": _box(drawn, axes),
        "across": _across(axes, at),
    }
    label = escape(read)
    # A name may have </script> in it.
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    return (
        f'<div class="reader" hidden><label for="{prefix}-at">{label} '
        f'<output for="{prefix}-at"></output></label>'
        f'<input type="range" id="{prefix}-at" min="0" max="{len(at) - 1}" value="{len(at) - 1}">'
        f'<ul></ul><script type="application/json">{text}</script>'
        "</div>"
    )


def _values(line: Line2D, at: Floats) -> list[float | None]:
    """The line's values at `at`; None where it has none."""
    x, y = (np.asarray(each, dtype=float).tolist() for each in line.get_data())
    known = dict(zip(x, y, strict=True))
    found = [known.get(value) for value in at.tolist()]
    return [None if value is None or not np.isfinite(value) else _short(value) for value in found]


def _short(value: float) -> float:
    return float(f"{value:.5g}")


def _box(drawn: Figure, axes: Axes) -> list[float]:
    """Where the plot is in the SVG: left, top, width, height."""
    width, height = drawn.get_size_inches() * _POINTS
    place = axes.get_position()
    return [
        round(float(each), 1)
        for each in (
            place.x0 * width,
            (1 - place.y1) * height,
            place.width * width,
            place.height * height,
        )
    ]


def _across(axes: Axes, at: Floats) -> list[float]:
    """How far along the x axis each value is, from 0 to 1."""
    points = axes.transData.transform([(x, 1.0) for x in at])[:, 0]
    (left, _), (right, _) = axes.transAxes.transform([(0, 0), (1, 0)])
    return [round(float(each), 4) for each in (points - left) / (right - left)]
