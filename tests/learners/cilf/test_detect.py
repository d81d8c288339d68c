"""Our detector."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from cilf import CILF
from cilf.checks.output import require_well_formed
from cilf.clustering.evidence import centres_to_try
from cilf.core import Detection
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
    assert found.is_novel[:45].mean() < 0.5  # by writers that it has not seen


def test_a_fixed_k_is_not_searched_for(fitted: CILF, window: Array) -> None:
    assert fitted.detect(window, n_novel=2).curve == {}
    assert sorted(fitted.detect(window).curve) == centres_to_try(None, len(window))


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
    centres = torch.stack(
        [placed.points[torch.from_numpy(found.cluster == k)].mean(0) for k in (0, 1)]
    )
    nearest = torch.cdist(placed.points, torch.cat([placed.known, centres])).argmin(1).numpy()
    assert np.array_equal(found.is_novel, nearest >= len(placed.known))


def test_a_given_number_has_the_clusters_that_would_be_found(fitted: CILF, window: Array) -> None:
    found = fitted.detect(window)
    given = fitted.detect(window, n_novel=found.n_novel)
    assert np.array_equal(found.cluster, given.cluster)
    assert given.count_probability == {found.n_novel: 1.0}
    assert sum(found.count_probability.values()) == pytest.approx(1.0)


def test_p_values_do_not_depend_on_the_window(fitted: CILF, window: Array) -> None:
    p = fitted.detect(window).novelty_p
    assert np.array_equal(fitted.detect(window, n_novel=0).novelty_p, p)
    assert np.allclose(fitted.novelty_p(window[:5]), p[:5], atol=0.05)
    assert np.median(p[45:]) < 0.1 < np.median(p[:45])


def test_detection_works_without_a_memory(fitted: CILF, window: Array, digits: Digits) -> None:
    learner = copy.deepcopy(fitted).set_params(memory_size=0)
    learner.update(*digits(range(3, 4), 60, 30))
    assert np.isfinite(learner.detect(window).novelty).all()


def fit_quickly(digits: Digits, **changes: int) -> CILF:
    return CILF(epochs=2, **changes).fit(*digits(range(3), 0, 45))


def require_sound(learner: CILF, window: Array) -> None:
    """Fail unless a number that is found and one that is given have finite results."""
    for n_novel in (None, 1):
        found = learner.detect(window, n_novel)
        require_well_formed(found, len(window))
        assert n_novel is None or found.n_novel == n_novel


@pytest.mark.parametrize("n", [1, 2])
def test_windows_smaller_than_the_number_of_classes(n: int, fitted: CILF, window: Array) -> None:
    require_sound(fitted, window[:n])
    require_sound(fitted, window[-n:])


def test_a_window_of_equal_instances(fitted: CILF, window: Array) -> None:
    for i in (0, -1):
        require_sound(fitted, np.repeat(window[i : i + 1 or None], 30, axis=0))
    require_sound(fitted, np.zeros((30, 8, 8), dtype=np.float32))


def test_features_that_never_vary(digits: Digits, window: Array) -> None:
    X, y = digits(range(3), 0, 45)
    flat = CILF(epochs=2).fit(np.ones_like(X), y)
    require_sound(flat, np.ones_like(window))
    require_sound(flat, window)
    vectors = X.reshape(len(X), -1).copy()
    vectors[:, 10:] = 3.0
    constant = window.reshape(len(window), -1).copy()
    constant[:, 10:] = 3.0
    require_sound(CILF(epochs=2).fit(vectors, y), constant)


def test_a_known_class_of_two_instances(digits: Digits, window: Array) -> None:
    X, y = digits(range(3), 0, 45)
    require_sound(CILF(epochs=2).fit(X[:92], y[:92]), window)
    require_sound(CILF(epochs=2).fit(X[[0, 1, 45, 46]], y[[0, 1, 45, 46]]), window)


@pytest.mark.parametrize("changes", [{"calibration_size": 0}, {"memory_size": 0}], ids=str)
def test_no_held_out_instances_or_no_memory(
    changes: dict[str, int], digits: Digits, window: Array
) -> None:
    learner = fit_quickly(digits, **changes)
    require_sound(learner, window)
    require_sound(learner, window[:1])
    assert learner.detect(window, n_novel=2).is_novel[45:].mean() > 0.5
    assert np.median(learner.novelty_p(window[45:])) < 0.2


def test_neither_held_out_instances_nor_a_memory(digits: Digits, window: Array) -> None:
    """Nothing says how known instances lie, so nothing is found; a given number is kept."""
    learner = fit_quickly(digits, calibration_size=0, memory_size=0)
    require_sound(learner, window)
    require_sound(learner, window[:1])
    assert learner.detect(window).n_novel == 0
    assert learner.novelty_p(window).tolist() == [1.0] * len(window)
