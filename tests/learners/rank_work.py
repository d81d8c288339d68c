"""What a test has the ranks of a group do with learners. Their processes import this file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from cilf.core.types import Array
from cilf.learners import LEARNERS, make

TRAINED = [name for name, learner in LEARNERS.items() if "training" in learner().get_params()]
BUDGETS = {
    "epochs": 2, "update_epochs": 1, "width": 8, "backbone": "convnet", "open_epochs": 1,
    "gan__epochs": 1, "gan__update_epochs": 1, "gan__width": 4, "gan__latent_size": 8,
    "counterfactuals__batches": 1, "counterfactuals__steps": 2, "readout": "prototype",
}  # fmt: skip


class Known(NamedTuple):
    """What a learner says of instances that it has not seen."""

    embedding: Array
    label: Array


def digits(classes: range, first: int, n: int) -> tuple[Array, Array]:
    data = load_digits()
    rows = np.concatenate([np.flatnonzero(data.target == c)[first : first + n] for c in classes])
    return data.images[rows].astype(np.float32), data.target[rows]


def budget(name: str) -> Mapping[str, Any]:
    known = make(name).get_params()
    return {key: value for key, value in BUDGETS.items() if key in known}


def learn_all() -> dict[str, Known]:
    """Fit and update every learner with a network."""
    known = {}
    for name in TRAINED:
        learner = make(name, **budget(name)).fit(*digits(range(3), 0, 35))
        learner.update(*digits(range(4), 60, 25))
        X, _ = digits(range(4), 120, 20)
        known[name] = Known(learner.embed(X), learner.predict(X))
    return known
