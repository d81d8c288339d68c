from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from sklearn.datasets import load_digits

from cilf import CILF
from cilf.core.types import Array

Digits = Callable[[Sequence[int], int, int], tuple[Array, Array]]


@pytest.fixture(scope="session")
def digits() -> Digits:
    """(classes, first, number) -> images and labels of each class."""
    data = load_digits()
    X, y = data.images.astype(np.float32), data.target

    def of_classes(classes: Sequence[int], first: int, n: int) -> tuple[Array, Array]:
        rows = np.concatenate([np.flatnonzero(y == c)[first : first + n] for c in classes])
        return X[rows], y[rows]

    return of_classes


@pytest.fixture(scope="session")
def fitted(digits: Digits) -> CILF:
    """A learner of three classes; copy it before an update."""
    return CILF(epochs=6, update_epochs=4).fit(*digits(range(3), 0, 45))


@pytest.fixture(scope="session")
def window(digits: Digits) -> Array:
    """Three known classes and two novel ones."""
    return digits(range(5), 60, 15)[0]
