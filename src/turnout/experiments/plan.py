"""Which cells an experiment has, and what each of them needs."""

from pathlib import Path
from typing import Any

from turnout.experiments.cells import Cell, Place
from turnout.experiments.config import Config
from turnout.experiments.directory import cell_folders
from turnout.experiments.methods import Known, algorithm, methods
from turnout.experiments.world import Settings


class Cells:
    """All cells of an experiment; folders are relative to its run directory.

    The newest world is kept, so that it pays to go through one seed after the other.
    """

    def __init__(self, config: Config) -> None:
        self.config, self.methods = config, methods(config)
        self.folders = cell_folders(self.methods)
        self._settings = Settings(config)
        self._newest: tuple[int, list[Cell]] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Cells, (self.config,)  # Another process builds its own: worlds are large.

    def places(self) -> list[Place]:
        return [
            Place(label, seed, self._folder(label, seed))
            for seed in self.config.run.seeds
            for label in self.methods
        ]

    def of(self, seed: int) -> list[Cell]:
        """The cells of this seed, in one world."""
        if self._newest is None or self._newest[0] != seed:
            self._newest = None  # There may be no room for two worlds.
            setting = self._settings.of(seed)
            known = Known.of(setting.world)
            built = [
                Cell(label, algorithm(method, known), seed, setting, self._folder(label, seed))
                for label, method in self.methods.items()
            ]
            self._newest = seed, built
        return self._newest[1]

    def _folder(self, label: str, seed: int) -> Path:
        return self.folders[label] / f"seed-{seed}"
