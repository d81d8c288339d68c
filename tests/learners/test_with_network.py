from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cilf.errors import BadConfig
from cilf.learners import load
from cilf.learners.odin import ODIN
from cilf.learners.with_network import WithNetwork
from cilf.nn.memory import Memory
from cilf.nn.network import Network, embed
from cilf.nn.training import Settings, Training

SHAPE = (5,)


@dataclass(kw_only=True, repr=False, eq=False)
class Plain(WithNetwork):
    """The shared parts alone."""

    def made(self) -> Network:
        self._architecture = self._wanted_architecture(embedding_size=3)
        self._network = self._make_network(SHAPE, self._architecture)
        return self._network


def some(n: int = 4) -> torch.Tensor:
    return torch.randn(n, *SHAPE, generator=torch.Generator().manual_seed(0))


def own(shape: tuple[int, ...]) -> nn.Module:
    return nn.Sequential(nn.Linear(shape[0], 7), nn.Tanh())


def test_weights_come_from_the_seed() -> None:
    first, again, other = (embed(Plain(seed=seed).made(), some()) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


def test_width_and_backbone_reach_the_network() -> None:
    assert Plain(width=12).made().head.in_features == 12
    assert Plain(backbone=own).made().head.in_features == 7


def test_a_network_comes_back_from_its_state_whatever_the_parameters_are_by_then() -> None:
    learner = Plain(width=12)
    z = embed(learner.made(), some())
    arrays, plain = learner._network_state()
    again = Plain(width=99, seed=5)
    again._set_network(SHAPE, arrays, plain)
    assert torch.equal(embed(again._network, some()), z)
    assert again._architecture == learner._architecture
    assert not again._network.training


def test_an_own_backbone_is_handed_in_again() -> None:
    learner = Plain(backbone=own)
    z = embed(learner.made(), some())
    arrays, plain = learner._network_state()
    assert plain["architecture"]["backbone"] is None  # what fits into JSON
    again = Plain(backbone=own, seed=5)
    again._set_network(SHAPE, arrays, plain)
    assert torch.equal(embed(again._network, some()), z)


def test_parameters_reach_the_training() -> None:
    learner = Plain(training=Training(weight_decay=0.5, clip=None, augmentation="flip"))
    assert learner.training.settings(3, 0.2) == Settings(
        epochs=3, learning_rate=0.2, weight_decay=0.5, clip=None, augmentation="flip"
    )


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


def test_labelled_instances_as_tensors() -> None:
    learner = Plain()
    network = learner.made()
    labelled = Memory(np.ones((3, 5), dtype=np.float32), np.array([2, 0, 1]))
    x, y = learner._tensors(labelled, network)
    assert (x.shape, y.tolist()) == ((3, 5), [2, 0, 1])
    assert x.device == y.device == network.device


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
