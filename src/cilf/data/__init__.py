"""Data sets by name: ``load_dataset(name)`` gives a :class:`Dataset`.

A loader family is one file with one function that returns a Dataset; ``DATASETS`` names them.
"""

from collections.abc import Callable

from cilf.core import validation
from cilf.data.dataset import Dataset, Split
from cilf.data.digits import load_digits

__all__ = ["DATASETS", "Dataset", "Split", "load_dataset"]

DATASETS: dict[str, Callable[[], Dataset]] = {"digits": load_digits}


def load_dataset(name: str) -> Dataset:
    """Load a data set by its name.

    >>> load_dataset("digits").train.X.shape
    (1437, 8, 8)
    """
    return DATASETS[validation.one_of("data set", name, DATASETS)]()
