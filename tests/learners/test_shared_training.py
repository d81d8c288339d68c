"""Learners on two devices know what they know on one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cilf
from cilf.core.types import Array
from cilf.errors import BadConfig, CilfError
from cilf.learners import Learner, base, learner_class, make, persistence
from cilf.learners.dnn_base import DNNBase
from cilf.learners.plugins import locate_class
from cilf.nn.rank_processes import run_in_ranks

from .rank_work import TRAINED, Known, budget, digits, learn_all

PLUGIN = """
from cilf.learners.dnn_base import DNNBase


class Mine(DNNBase):
    name = "mine"
"""


@pytest.fixture(scope="module")
def alone() -> dict[str, Known]:
    return learn_all()


@pytest.fixture(scope="module")
def together() -> dict[str, Known]:
    return run_in_ranks(learn_all, devices=2)


@pytest.mark.parametrize("name", TRAINED)
def test_every_learner_learns_on_two_devices_what_it_learns_on_one(
    name: str, alone: dict[str, Known], together: dict[str, Known]
) -> None:
    # The dropout of imm drops other units in each rank.
    tolerance = 0.02 if name.startswith("imm") else 1e-4
    size = np.abs(alone[name].embedding).max()
    assert np.allclose(alone[name].embedding, together[name].embedding, atol=tolerance * size)
    assert np.array_equal(alone[name].label, together[name].label)


@pytest.fixture(scope="module")
def pair() -> list[Learner]:
    """A learner on one device and on two, with an update."""
    learners = [make("cilf", **budget("cilf"), training__devices=n) for n in (1, 2)]
    for learner in learners:
        learner.fit(*digits(range(3), 0, 40)).update(*digits(range(4), 60, 30))
    return learners


def describe(folder: Path) -> tuple[dict[str, Any], Mapping[str, Array]]:
    description, arrays = persistence.read(folder)
    description["parameters"]["training"].pop("devices", None)  # one device goes without saying
    del description["tensors"]
    return description, arrays


def test_a_fit_and_an_update_by_processes_are_those_of_one(
    pair: list[Learner], tmp_path: Path
) -> None:
    X, _ = digits(range(5), 120, 25)
    one, two = pair
    assert np.array_equal(one.predict(X), two.predict(X))
    assert np.allclose(one.embed(X), two.embed(X), atol=1e-5)
    assert np.array_equal(one.detect(X, n_novel=1).cluster, two.detect(X, n_novel=1).cluster)
    one.save(tmp_path / "one")
    two.save(tmp_path / "two")
    (about_one, arrays_one), (about_two, arrays_two) = map(describe, tmp_path.iterdir())
    assert json.dumps(about_one, sort_keys=True) == json.dumps(about_two, sort_keys=True)
    forms = [{name: (a.shape, a.dtype) for name, a in arrays.items()}
             for arrays in (arrays_one, arrays_two)]  # fmt: skip
    assert forms[0] == forms[1]
    again = cilf.load(tmp_path / "two", training__devices=1)
    assert np.array_equal(again.predict(X), two.predict(X))
    again.update(*digits(range(5), 90, 20))


def test_an_update_that_fails_changes_nothing(
    pair: list[Learner], monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, (X, y) = pair[1], digits(range(5), 90, 20)
    before = learner.embed(X), learner.classes_.tolist()

    def lose(*arguments: Any, **options: Any) -> None:
        raise CilfError("process 2 of 2 ended")

    monkeypatch.setattr(base, "learn_in_ranks", lose)
    with pytest.raises(CilfError, match="process 2 of 2"):
        learner.update(X, y)
    assert np.array_equal(learner.embed(X), before[0])
    assert learner.classes_.tolist() == before[1]


def test_only_learners_with_a_network_have_devices() -> None:
    with pytest.raises(BadConfig, match="unknown parameter of 'iforest' 'training'"):
        make("iforest", training__devices=2)


def test_a_class_in_a_file_is_sent_by_its_place(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(PLUGIN, encoding="utf-8")
    assert locate_class(learner_class(f"{path}:Mine")) == f"{path}:Mine"
    assert locate_class(DNNBase) is None
