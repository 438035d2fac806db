"""What every calculator returns: a bound with its terms and conditions, or a setting with reasons.

A paper's O(·) hides constants. A `Bound` says whether its constants are explicit; where they are
not, its value and terms are orders of magnitude: compare them with each other, not with a run.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from turnout.errors import require

Kind = Literal["upper", "lower", "equal", "order"]

_SAYS: dict[Kind, tuple[str, str]] = {
    "upper": ("≤", "constants explicit: an upper bound where every condition holds"),
    "lower": ("≥", "constants explicit: a lower bound in the worst case"),
    "equal": ("=", "an equality"),
    "order": (
        "= O of",
        "constants hidden by O(·): orders of magnitude, to be compared with each other only",
    ),
}


@dataclass(frozen=True)
class Condition:
    """One condition of a theorem: `left` must be at most (or, by its text, equal to) `right`."""

    text: str
    holds: bool
    left: float
    right: float

    def __str__(self) -> str:
        mark = "holds" if self.holds else "FAILS"
        return f"{mark}  {self.text}   ({self.left:.4g} against {self.right:.4g})"


def at_most(text: str, left: float, right: float) -> Condition:
    """left ≤ right; a setting that was chosen as the limit itself passes in spite of rounding."""
    return Condition(text, bool(left <= right + 1e-9 * abs(right)), float(left), float(right))


def equal(text: str, left: float, right: float) -> Condition:
    """left = right, up to rounding."""
    return Condition(text, math.isclose(left, right, rel_tol=1e-9), float(left), float(right))


@dataclass(frozen=True)
class Bound:
    """A bound of a paper, taken apart.

    >>> two = Bound.of("Some theorem", "E‖∇f‖²", {"start": 1.0, "noise": 3.0},
    ...     at_most("γ ≤ 1/L", 0.1, 1.0))
    >>> two.value, two.dominant, two.holds
    (4.0, 'noise', True)
    >>> print(two)
    Some theorem: E‖∇f‖² ≤ 4
      start        1    25 %
      noise        3    75 %  largest
    Conditions
      holds  γ ≤ 1/L   (0.1 against 1)
    constants explicit: an upper bound where every condition holds
    """

    name: str
    quantity: str
    """What is bounded."""
    value: float
    terms: Mapping[str, float]
    conditions: tuple[Condition, ...] = ()
    kind: Kind = "upper"
    note: str = ""

    @staticmethod
    def of(
        name: str,
        quantity: str,
        terms: Mapping[str, float],
        *conditions: Condition,
        kind: Kind = "upper",
        note: str = "",
    ) -> "Bound":
        """The sum of `terms`."""
        parts = {text: float(term) for text, term in terms.items()}
        return Bound(name, quantity, sum(parts.values()), parts, conditions, kind, note)

    @property
    def explicit(self) -> bool:
        """Are the constants all there, rather than hidden by O(·)?"""
        return self.kind != "order"

    @property
    def holds(self) -> bool:
        """Does every condition hold?"""
        return all(condition.holds for condition in self.conditions)

    @property
    def dominant(self) -> str:
        """The term that is largest."""
        return max(self.terms, key=lambda text: abs(self.terms[text]))

    def __str__(self) -> str:
        relation, meaning = _SAYS[self.kind]
        lines = [f"{self.name}: {self.quantity} {relation} {self.value:.4g}"]
        if len(self.terms) > 1:
            width = max(map(len, self.terms))
            whole = sum(abs(term) for term in self.terms.values())
            for text, term in self.terms.items():
                share = 100 * abs(term) / whole if 0 < whole < math.inf else math.nan
                mark = "  largest" if text == self.dominant else ""
                lines.append(f"  {text:{width}}  {term:>10.4g}  {share:>4.0f} %{mark}")
        if self.conditions:
            lines += ["Conditions", *(f"  {condition}" for condition in self.conditions)]
        return "\n".join([*lines, meaning, *filter(None, [self.note])])

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "name": self.name,
            "quantity": self.quantity,
            "value": self.value,
            "terms": dict(self.terms),
            "conditions": [vars(condition) for condition in self.conditions],
            "holds": self.holds,
            "kind": self.kind,
            "constants": "explicit" if self.explicit else "hidden by O(·)",
            "note": self.note,
        }


@dataclass(frozen=True)
class Setting:
    """A recommended setting: the least of its limits, and why.

    >>> print(Setting.least("lr", "γ", {"1/(L·I·√T)": 0.01, "1/(4√15·L·I)": 0.0129}, "Corollary 4"))
    lr (γ) = 0.01: 1/(L·I·√T) [Corollary 4]
      below 1/(4√15·L·I) = 0.0129
    """

    name: str
    """As turnout calls it."""
    symbol: str
    """As the paper calls it."""
    value: float
    reason: str
    source: str
    limits: Mapping[str, float]

    @staticmethod
    def least(name: str, symbol: str, limits: Mapping[str, float], source: str) -> "Setting":
        found = {text: float(limit) for text, limit in limits.items()}
        binding = min(found, key=lambda text: found[text])
        return Setting(name, symbol, found[binding], binding, source, found)

    def __str__(self) -> str:
        head = f"{self.name} ({self.symbol}) = {self.value:.6g}: {self.reason} [{self.source}]"
        others = (item for item in self.limits.items() if item[0] != self.reason)
        return "\n".join([head, *(f"  below {text} = {limit:.6g}" for text, limit in others)])

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {**vars(self), "limits": dict(self.limits)}


def positive(**values: float) -> None:
    """Refuse arguments that are not finite numbers above 0."""
    _refuse(values, lambda value: value > 0, "a finite number above 0")


def nonnegative(**values: float) -> None:
    """Refuse arguments that are not finite numbers of at least 0."""
    _refuse(values, lambda value: value >= 0, "a finite number of at least 0")


def counts(**values: int) -> None:
    """Refuse arguments that are not whole numbers from 1."""
    _refuse(values, lambda value: value >= 1 and value == int(value), "a whole number from 1")


def _refuse(values: Mapping[str, float], good: Callable[[float], bool], right: str) -> None:
    for field, value in values.items():
        number = not isinstance(value, bool | str) and value is not None
        require(number and math.isfinite(value) and good(value), field, value, right)
