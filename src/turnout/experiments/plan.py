"""Which cells an experiment has, and what each of them needs."""

from pathlib import Path
from typing import Any

from turnout.experiments.cells import Cell, Place
from turnout.experiments.config import Config
from turnout.experiments.directory import cell_folders
from turnout.experiments.files import json_line
from turnout.experiments.kin import but_for_axes
from turnout.experiments.methods import Known, algorithm, methods
from turnout.experiments.world import Settings
from turnout.together import evenly


class Cells:
    """All cells of an experiment; folders are relative to its run directory.

    The newest worlds are kept, `worlds` of them, so that it pays to go through one seed after the
    other.
    """

    def __init__(self, config: Config, worlds: int = 1) -> None:
        self.config, self.methods, self.worlds = config, methods(config), worlds
        self.folders = cell_folders(self.methods)
        self._settings = Settings(config)
        self._newest: dict[int, list[Cell]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Cells, (
            self.config,
            self.worlds,
        )  # Another process builds its own: worlds are large.

    def places(self) -> list[Place]:
        return [
            Place(label, seed, self._folder(label, seed))
            for seed in self.config.run.seeds
            for label in self.methods
        ]

    def of(self, seed: int) -> list[Cell]:
        """The cells of this seed, in one world."""
        if seed not in self._newest:
            while len(self._newest) >= self.worlds:  # There may be no room for one more.
                del self._newest[next(iter(self._newest))]
            setting = self._settings.of(seed)
            known = Known.of(setting.world)
            built = [
                Cell(label, algorithm(method, known), seed, setting, self._folder(label, seed))
                for label, method in self.methods.items()
            ]
            self._newest[seed] = built
        return self._newest[seed]

    def groups(self, rooms: dict[str, int]) -> list[list[Place]]:
        """All cells in the order in which they are played; those in one list train together.

        `rooms` says, by the method's label, how many at the most.
        """
        kin: dict[str, list[str]] = {}
        for label, section in zip(self.methods, self.config.algorithm, strict=True):
            table = section.model_dump(exclude={"label"})
            kin.setdefault(json_line(but_for_axes(table)), []).append(label)
        places = self.places()
        groups = []
        for labels in kin.values():
            some = [place for place in places if place.label in labels]
            size = evenly(len(some), min(rooms[label] for label in labels))
            groups += [some[start : start + size] for start in range(0, len(some), size)]
        return sorted(groups, key=lambda group: places.index(group[0]))

    def _folder(self, label: str, seed: int) -> Path:
        return self.folders[label] / f"seed-{seed}"
