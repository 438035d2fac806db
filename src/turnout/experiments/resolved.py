"""A configuration with all its defaults written out: what the run directory keeps."""

from typing import Any

from turnout.experiments.config import AlgorithmSection, Config
from turnout.experiments.keys import SUPPLIED
from turnout.experiments.methods import SUPPLIED as OF_METHODS
from turnout.experiments.methods import labels, recipe
from turnout.experiments.options import REQUIRED, Option, options
from turnout.experiments.world import PARTITIONS
from turnout.participation import PROCESSES


def resolved(config: Config) -> dict[str, Any]:
    """Tables that `configure` reads as the same experiment, whatever defaults change later."""
    table = config.model_dump()
    if config.data.partition is not None:
        known = options(PARTITIONS[config.data.partition.name], SUPPLIED)
        table["data"]["partition"] = _filled(table["data"]["partition"], known)
    known = options(PROCESSES[config.participation.process], SUPPLIED)
    table["participation"] = _filled(table["participation"], known)
    table["algorithm"] = [
        {**_algorithm(section), "label": label}
        for section, label in zip(config.algorithm, labels(config.algorithm), strict=True)
    ]
    return table


def _algorithm(section: AlgorithmSection) -> dict[str, Any]:
    filled = _filled(section.model_dump(), options(recipe("algorithm", section.name), OF_METHODS))
    if section.inner is not None:
        filled["inner"] = _algorithm(section.inner)
    return {key: value for key, value in filled.items() if key not in ("label", "inner") or value}


def _filled(table: dict[str, Any], known: dict[str, Option]) -> dict[str, Any]:
    defaults = {
        name: option.default for name, option in known.items() if option.default is not REQUIRED
    }
    return {**table, **{name: value for name, value in defaults.items() if name not in table}}
