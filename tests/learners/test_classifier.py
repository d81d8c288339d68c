from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

from cilf.core.types import Array
from cilf.errors import BadConfig
from cilf.learners import Learner, load
from cilf.learners.odin import ODIN
from cilf.nn.training import Training

Kept = Callable[[Learner], Any]


def blobs(n: int = 12) -> tuple[Array, Array]:
    y = np.repeat(["a", "b"], n)
    rng = np.random.default_rng(0)
    return rng.normal(np.where(y == "a", -4.0, 4.0)[:, None], 1.0, (2 * n, 3)), y


def own(shape: tuple[int, ...]) -> nn.Module:
    return nn.Sequential(nn.Linear(shape[0], 7), nn.Tanh())


def test_weights_come_from_the_seed() -> None:
    X, y = blobs()
    first, again, other = (ODIN(epochs=0, seed=seed).fit(X, y).embed(X) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.allclose(first, other)


def test_width_and_backbone_reach_the_network() -> None:
    X, y = blobs()
    assert ODIN(epochs=0, width=12).fit(X, y).embed(X).shape[1] == 12
    assert ODIN(epochs=0, backbone=own).fit(X, y).embed(X).shape[1] == 7


def test_a_loaded_network_is_the_stored_one_whatever_the_parameters_are(tmp_path: Path) -> None:
    X, y = blobs()
    learner = ODIN(epochs=1, width=12).fit(X, y)
    learner.set_params(width=99, seed=5).save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").embed(X), learner.embed(X))


def test_a_backbone_of_ones_own_is_given_again(tmp_path: Path) -> None:
    X, y = blobs()
    learner = ODIN(epochs=1, backbone=own).fit(X, y)
    learner.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model", backbone=own).embed(X), learner.embed(X))


def test_the_memory_has_the_size_that_was_asked_for(memory: Kept, held_out: Kept) -> None:
    learner = ODIN(epochs=0, memory_size=6, calibration_size=2).fit(*blobs())
    assert memory(learner).counts == [3, 3]
    assert held_out(learner).counts == [2, 2]


def test_learners_share_no_change_of_a_part() -> None:
    part = Training(clip=None)
    learner, other = ODIN(training=part), ODIN(training=part)
    learner.set_params(training__batch_size=8)
    assert learner.training == Training(clip=None, batch_size=8)
    assert other.training == part == Training(clip=None)
    assert ODIN().training == Training()


def test_a_model_keeps_its_parts(tmp_path: Path) -> None:
    learner = ODIN(epochs=1, training=Training(batch_size=2, augmentation=None))
    learner.fit([[0.0], [1.0]], ["a", "b"]).save(tmp_path / "model")
    assert load(tmp_path / "model").get_params() == learner.get_params()
    changed = load(tmp_path / "model", training__batch_size=3)
    assert changed.training == Training(batch_size=3, augmentation=None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("training__batch_size", 0),
        ("epochs", -1),
        ("update_epochs", 1.5),
        ("training__learning_rate", -0.1),
        ("training__update_learning_rate", float("nan")),
        ("training__weight_decay", -1.0),
        ("training__clip", 0.0),
    ],
)
def test_what_cannot_work_is_refused(name: str, value: Any) -> None:
    with pytest.raises(BadConfig, match=f"{name.replace('__', '.')} is {value}"):
        ODIN().set_params(**{name: value}).fit([[0.0], [1.0]], ["a", "b"])
