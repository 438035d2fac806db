"""What has been asked for: an item, at a scale, with so many seeds, into a folder."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from turnout.experiments.interrupt import Asked
from turnout.reproduce.grid import Cell, cells
from turnout.reproduce.item import Item
from turnout.reproduce.play import Tell
from turnout.reproduce.run import Played, Told, play_all


class Request(NamedTuple):
    item: Item
    scale: str
    seeds: int | None
    folder: Path
    """Where cells are kept."""
    jobs: int = 1
    told: Callable[[Told], None] | None = None
    tell: Tell | None = None
    trust: bool = False
    """Whether results count that were made by code which has changed since."""
    asked: Asked | None = None

    @property
    def command(self) -> str:
        seeds = "" if self.seeds is None else f" --seeds {self.seeds}"
        return f"turnout reproduce {self.item.title} --scale {self.scale}{seeds}"

    @property
    def setting(self) -> str:
        """What differs from the paper: what the scale changes, and fewer or more seeds if asked for."""
        says = self.item.scales[self.scale].says
        if self.seeds is None:
            return says
        return f"{says}. Here: {self.seeds} seed{'' if self.seeds == 1 else 's'}, by --seeds"

    def play(self, chosen: list[Cell] | None = None) -> list[Played]:
        """The results of these cells; of all of the item's, unless given."""
        if chosen is None:
            chosen = cells(self.item, self.scale, self.seeds)
        return play_all(
            chosen, self.folder, self.jobs, self.told, self.tell, self.trust, self.asked
        )
