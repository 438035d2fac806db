"""Who belongs to the federation: stable names, and a row for each."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from turnout.errors import InputError, require
from turnout.flower.words import as_name

Population = int | Sequence[str] | None


@dataclass
class Roster:
    """Names in the order of their rows, and how many rows there are."""

    size: int
    """N. Rows without a name belong to clients that have not come yet."""
    grows: bool = False
    """Does N count only those who have joined, or was it known at the start?"""
    names: list[str] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def of(population: Population) -> "Roster":
        """A roster for N clients still to come, for these names, or for whoever comes (None).

        >>> Roster.of(["a", "b"]).rows
        {'a': 0, 'b': 1}
        """
        if population is None:
            return Roster(1, grows=True)  # a mean over nobody would be 0 / 0
        right = "a number of clients, a list of their names, or none for whoever joins"
        listed = isinstance(population, Sequence) and not isinstance(population, str)
        counted = isinstance(population, int) and not isinstance(population, bool)
        require(listed or counted, "population", population, right)
        if isinstance(population, int):
            require(population >= 1, "population", population, "at least 1")
            return Roster(population)
        roster = Roster(len(population))
        require(len(population) >= 1, "population", population, "at least one name")
        for name in population:
            try:
                as_name(str(name))
            except ValueError as error:
                raise InputError(f"population holds {name!r}; {error}") from None
            if str(name) in roster.rows:
                raise InputError(f"population names {name!r} twice; a name is one client's")
            roster._add(str(name))
        return roster

    def admit(self, name: str) -> int | None:
        """The row of this client, a new one if need be; None if there is no room for it."""
        if name in self.rows:
            return self.rows[name]
        if len(self.names) == self.size:
            if not self.grows:
                return None
            self.size += 1
        return self._add(name)

    def _add(self, name: str) -> int:
        self.rows[name] = len(self.names)
        self.names.append(name)
        return self.rows[name]
