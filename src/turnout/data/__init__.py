"""Data: pools of samples, the sets they come from, and how clients share them."""

from turnout.data.augment import AUGMENTATIONS, Augmentation
from turnout.data.auxiliary import auxiliary, mixed_in
from turnout.data.digits import digits
from turnout.data.load import DATASETS, load
from turnout.data.partition import (
    class_mix,
    classes_covered,
    dirichlet,
    iid,
    natural,
    shards,
    similarity,
)
from turnout.data.pool import Partition, Pool
from turnout.data.source import Source
from turnout.data.synthetic import Problem, least_squares, quadratics

__all__ = [
    "AUGMENTATIONS",
    "DATASETS",
    "Augmentation",
    "Partition",
    "Pool",
    "Problem",
    "Source",
    "auxiliary",
    "class_mix",
    "classes_covered",
    "digits",
    "dirichlet",
    "iid",
    "least_squares",
    "load",
    "mixed_in",
    "natural",
    "quadratics",
    "shards",
    "similarity",
]
