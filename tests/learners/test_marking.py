from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from cilf.errors import BadConfig
from cilf.learners.base import Arrays
from cilf.learners.marking import MarkingLearner, Marks


@dataclass(kw_only=True, repr=False, eq=False)
class Above(MarkingLearner):
    """What lies higher than this is novel; the class is known from which side it is on."""

    name = "above"

    limit: float = 10.0

    def _mark(self, X: np.ndarray) -> Marks:
        height = X[:, 1]
        return Marks(height.astype(np.float64), height > self.limit, self._predict(X), X)

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None: ...

    def _update(self, X: np.ndarray, y: np.ndarray, n_classes: int) -> None: ...

    def _predict(self, X: np.ndarray) -> np.ndarray:
        return (X[:, 0] > 0).astype(np.int64)

    def _embed(self, X: np.ndarray) -> np.ndarray:
        return X

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        return {}, {}

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None: ...


def around(*points: tuple[float, float], n: int = 20) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(p, 0.5, size=(n, 2)) for p in points]).astype(np.float32)


@pytest.fixture
def learner() -> Above:
    return Above().fit([[-1.0, 0.0], [1.0, 0.0]], ["left", "right"])


def test_a_detection_says_what_the_detector_saw(learner: Above) -> None:
    window = around((-5, 0), (5, 0), (-5, 30))
    found = learner.detect(window)
    assert found.novelty.dtype == np.float32
    assert found.novelty.tolist() == window[:, 1].tolist()
    assert found.label.tolist() == ["left"] * 20 + ["right"] * 20 + ["left"] * 20
    assert found.embedding.tolist() == window.tolist()
    assert found.is_novel.tolist() == [False] * 40 + [True] * 20


@pytest.mark.parametrize("n", [1, 2, 3])
def test_marked_instances_are_split_into_the_classes_they_form(learner: Above, n: int) -> None:
    novel = [(0.0, 30.0), (30.0, 30.0), (-30.0, 60.0)][:n]
    learner.set_params(least_silhouette=0.6)
    found = learner.detect(around((-5, 0), (5, 0), *novel))
    assert found.n_novel == n
    groups = found.cluster.reshape(-1, 20)
    assert all(len(set(group)) == 1 for group in groups.tolist())
    assert sorted(groups[:, 0].tolist()) == [-1, -1, *range(n)]


def test_nothing_marked_is_nothing_found(learner: Above) -> None:
    found = learner.detect(around((-5, 0), (5, 0)))
    assert found.n_novel == 0
    assert found.curve == {}


def test_asked_for_classes_the_most_novel_make_them(learner: Above) -> None:
    window = around((-5, 0), (5, 0))
    found = learner.detect(window, n_novel=2)
    assert sorted(np.flatnonzero(found.is_novel)) == sorted(np.argsort(-window[:, 1])[:2])
    assert learner.detect(around((0, 30)), n_novel=0).n_novel == 0


def test_no_more_classes_than_k_max(learner: Above) -> None:
    window = around((0, 30), (30, 30), (-30, 60))
    assert set(learner.set_params(k_max=2).detect(window).curve) == {1, 2}


def test_all_instances_can_be_clustered_and_a_cluster_be_novel_by_majority(learner: Above) -> None:
    window = around((-5, 0), (5, 0), (0, 30))
    learner.limit = 29.6  # cuts through the novel group: most of it is marked
    assert 10 < learner.detect(window).is_novel[40:].sum() < 20
    found = learner.set_params(cluster_all=True).detect(window)
    assert found.is_novel.tolist() == [False] * 40 + [True] * 20
    assert found.n_novel == 1


def test_detecting_twice_is_the_same(learner: Above) -> None:
    window = around((-5, 0), (5, 0), (0, 30), (3, 31), (6, 33))
    first, second = learner.detect(window), learner.detect(window)
    assert first.cluster.tolist() == second.cluster.tolist()
    assert first.curve == second.curve


@pytest.mark.parametrize(
    ("name", "value"),
    [("k_max", 0), ("least_silhouette", 2.0), ("cluster_all", "yes"), ("memory_size", -1)],
)
def test_what_cannot_work_is_refused(name: str, value: Any) -> None:
    with pytest.raises(BadConfig, match=name):
        Above(**{name: value}).fit([[0.0, 0.0], [1.0, 0.0]], ["a", "b"])
