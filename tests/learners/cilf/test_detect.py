"""Our detector."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from cilf import CILF
from cilf.core import Detection
from cilf.core.random import derive_seed
from cilf.core.types import Array
from cilf.nn.network import as_tensor

Digits = Callable[..., tuple[Array, Array]]


def detect(fitted: CILF, window: Array, n_novel: int | None = None, **changes: Any) -> Detection:
    detector = {f"detector__{name}": value for name, value in changes.items()}
    return copy.copy(fitted).set_params(**detector).detect(window, n_novel)


def test_novel_classes_are_told_from_known_ones(fitted: CILF, window: Array) -> None:
    found = fitted.detect(window)
    assert found.n_novel in (2, 3)  # the network was trained for a few epochs
    assert found.is_novel[45:].mean() > 0.8
    assert found.is_novel[:45].mean() < 0.3


def test_a_fixed_k_is_not_searched_for(fitted: CILF, window: Array) -> None:
    assert fitted.detect(window, n_novel=2).curve == {}
    most = 1 + len(window) // 16  # classes are not tried that would be tiny
    assert sorted(fitted.detect(window).curve) == list(range(most + 1))


@pytest.mark.parametrize(
    "change",
    [{"cluster_on": "embedding"}, {"cluster_on": "features"}, {"space_size": 3},
     {"whitening": 0.0}],
    ids=str,
)  # fmt: skip
def test_each_parameter_of_the_space_moves_the_points(
    change: dict[str, Any], fitted: CILF, window: Array
) -> None:
    usual, changed = detect(fitted, window, 2), detect(fitted, window, 2, **change)
    distances = [np.linalg.norm(f.embedding - f.embedding[0], axis=1) for f in (usual, changed)]
    assert not np.allclose(*distances, rtol=1e-3)


def test_inputs_are_the_last_of_three_views(fitted: CILF, window: Array) -> None:
    usual, all_three = detect(fitted, window), detect(fitted, window, cluster_on="inputs")
    assert np.array_equal(usual.embedding, all_three.embedding)


def test_no_more_classes_than_k_max(fitted: CILF, window: Array) -> None:
    assert sorted(detect(fitted, window, k_max=1).curve) == [0, 1]


@pytest.mark.parametrize("rule", ["silhouette", "curvature"])
def test_the_rule_decides_the_count(rule: str, fitted: CILF, window: Array) -> None:
    found = detect(fitted, window, count=rule)
    best = max(list(found.curve), key=lambda k: found.curve[k])
    assert found.n_novel == best if rule == "silhouette" else found.n_novel in found.curve


def test_more_false_alarms_miss_less(fitted: CILF, window: Array) -> None:
    few, many = (detect(fitted, window, 2, false_novel=share) for share in (0.01, 0.5))
    assert few.is_novel.sum() < many.is_novel.sum()
    assert np.array_equal(few.novelty, many.novelty)


@pytest.mark.parametrize("n_novel", [0, 1, 3, 9])
def test_novelty_is_the_same_whatever_number_is_given(
    n_novel: int, fitted: CILF, window: Array
) -> None:
    assert np.array_equal(fitted.detect(window, n_novel).novelty, fitted.detect(window).novelty)


def test_strict_holds_the_share_where_classes_overlap(fitted: CILF, digits: Digits) -> None:
    known = digits(range(3), 60, 60)[0]  # nothing is novel, and three centres are asked for
    loose = detect(fitted, known, 3, false_novel=0.02)
    strict = detect(fitted, known, 3, false_novel=0.02, strict=True)
    assert strict.is_novel.sum() < loose.is_novel.sum()


def test_without_held_out_instances_the_nearest_centre_decides(
    digits: Digits, window: Array
) -> None:
    learner = CILF(epochs=2, calibration_size=0).fit(*digits(range(3), 0, 45))
    found = learner.detect(window, n_novel=2)
    model = learner._model()
    placed = learner.detector._transform(as_tensor(window, learner._network.device), model)
    seed = derive_seed(learner.seed, "detect", 0)
    clusters = placed.cluster(2, torch.Generator().manual_seed(seed))
    assert np.array_equal(found.is_novel, clusters.assignment.numpy() >= clusters.n_known)


def test_detection_works_without_a_memory(fitted: CILF, window: Array, digits: Digits) -> None:
    learner = copy.deepcopy(fitted).set_params(memory_size=0)
    learner.update(*digits(range(3, 4), 60, 30))
    assert np.isfinite(learner.detect(window).novelty).all()
