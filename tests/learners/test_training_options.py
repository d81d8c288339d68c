"""Options of the one training loop, in every learner that trains with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from cilf.core.types import Array
from cilf.learners import LEARNERS, Learner, make

TRAINED = [name for name, learner in LEARNERS.items() if "training" in learner().get_params()]
BUDGETS = {
    "epochs": 6, "update_epochs": 4, "width": 16, "backbone": "convnet", "open_epochs": 2,
    "gan__epochs": 1, "gan__update_epochs": 1, "gan__width": 4, "gan__latent_size": 8,
    "counterfactuals__batches": 1, "counterfactuals__steps": 2, "tuning__warmup_epochs": 1,
    "tuning__sharpen_epochs": 2, "detector__epochs": 1, "detector__k_max": 2,
}  # fmt: skip


def digits(classes: range, first: int, n: int) -> tuple[Array, Array]:
    data = load_digits()
    rows = [np.flatnonzero(data.target == c)[first : first + n] for c in classes]
    chosen = np.concatenate(rows)
    return data.images[chosen].astype(np.float32), data.target[chosen]


def trained(name: str, **options: Any) -> Learner:
    known = make(name).get_params()
    budgets = {key: value for key, value in BUDGETS.items() if key in known}
    learner = make(name, **budgets, **options).fit(*digits(range(3), 0, 60))
    assert learner.detect(digits(range(4), 100, 15)[0]).novelty.dtype.kind == "f"
    return learner.update(*digits(range(4), 60, 30))


@pytest.mark.parametrize("name", TRAINED)
def test_bf16_learns_what_float32_learns(name: str) -> None:
    X, y = digits(range(4), 120, 40)
    exact, rough = (trained(name, training__precision=p) for p in ("float32", "bf16"))
    embeddings = [learner.embed(X) for learner in (exact, rough)]
    assert not np.array_equal(*embeddings)
    assert all(z.dtype == np.float32 and np.isfinite(z).all() for z in embeddings)
    right = [float((learner.predict(X) == y).mean()) for learner in (exact, rough)]
    assert right[1] > right[0] - 0.1


@pytest.mark.parametrize("name", TRAINED)
def test_a_cosine_schedule_changes_what_is_learned(name: str) -> None:
    X, _ = digits(range(4), 120, 5)
    usual, cosine = (trained(name, training__schedule=s) for s in ("constant", "cosine"))
    assert not np.allclose(usual.embed(X), cosine.embed(X))
