"""Several run directories as one, so that their methods can be compared."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from turnout.experiments.directory import differences
from turnout.experiments.results import Results


def merge(several: Sequence[Results]) -> Results:
    """All cells side by side; methods of one label are told apart by their directory's name.

    Settings beside the methods are those of the first; `apart` says what is otherwise elsewhere.
    """
    first = several[0]
    if len(several) == 1:
        return first
    times = Counter(label for results in several for label in results.labels())
    cells, sections = [], []
    for name, results in zip(names(several), several, strict=True):
        called = {label: f"{label} ({name})" if times[label] > 1 else label for label in times}
        cells += [replace(cell, label=called[cell.label]) for cell in results.cells]
        sections += [
            section.model_copy(update={"label": called.get(section.label or "", section.label)})
            for section in results.config.algorithm
        ]
    return Results(first.folder, first.config.model_copy(update={"algorithm": sections}), cells)


def names(several: Sequence[Results]) -> list[str]:
    """A short name for each directory: its own, with its parent's where that is not unique."""
    folders = [results.folder.resolve() for results in several]
    times = Counter(folder.name for folder in folders)
    return [
        folder.name if times[folder.name] == 1 else f"{folder.parent.name}/{folder.name}"
        for folder in folders
    ]


_OWN = ("name", "plots", "checkpoint_seconds", "threads", "engine", "track")
"""Keys of [run] that change no result."""


def apart(several: Sequence[Results]) -> list[str]:
    """How the settings of later directories differ from the first's, methods aside."""
    first, *others = (_settings(results) for results in several)
    return [
        f"{name}: {'; '.join(found)}"
        for name, other in zip(names(several)[1:], others, strict=True)
        if (found := list(differences(first, other)))
    ]


def _settings(results: Results) -> dict[str, Any]:
    table = results.config.model_dump(exclude={"algorithm"})
    table["run"] = {key: value for key, value in table["run"].items() if key not in _OWN}
    return table
