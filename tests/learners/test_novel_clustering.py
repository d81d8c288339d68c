from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from cilf.core import Detection
from cilf.core.parameters import check_params
from cilf.core.random import torch_generator
from cilf.errors import BadConfig
from cilf.learners import make
from cilf.learners.novel_clustering import NovelClustering, ScoredWindow
from cilf.learners.shared_space import SharedSpace
from cilf.nn.memory import Memory
from cilf.nn.views import Views

CLASSES = np.array(["left", "right"])


def around(*points: tuple[float, float], n: int = 20) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(p, 0.5, size=(n, 2)) for p in points]).astype(np.float32)


def detect(
    X: np.ndarray, n_novel: int | None = None, threshold: float = 10.0, **parameters: Any
) -> Detection:
    """What lies higher than the threshold is novel; the class is known from the side it is on."""
    height, side = X[:, 1].astype(np.float64), (X[:, 0] > 0).astype(np.int64)
    window = ScoredWindow(height, height > threshold, side, X)
    rng = torch_generator(0, "detect", 0)
    known = Memory(around((-5, 0), (5, 0)), np.repeat([0, 1], 20))
    space = SharedSpace(X, (known, None), plain_views, lambda X: X[:, 1] > threshold, seed=0)
    return NovelClustering(**parameters).detect(window, n_novel, CLASSES, rng, space)


def plain_views(X: np.ndarray, generator: torch.Generator) -> Views:
    return lambda X: [torch.from_numpy(X)]


def test_a_detection_says_what_the_detector_said() -> None:
    window = around((-5, 0), (5, 0), (-5, 30))
    found = detect(window)
    assert found.novelty.dtype == np.float32
    assert found.novelty.tolist() == window[:, 1].tolist()
    assert found.label.tolist() == ["left"] * 20 + ["right"] * 20 + ["left"] * 20
    assert found.embedding is not None
    assert found.embedding.tolist() == window.tolist()
    assert found.is_novel.tolist() == [False] * 40 + [True] * 20


@pytest.mark.parametrize("n", [1, 2, 3])
def test_novel_instances_are_split_into_the_clusters_they_form(n: int) -> None:
    novel = [(0.0, 30.0), (30.0, 30.0), (-30.0, 60.0)][:n]
    found = detect(around((-5, 0), (5, 0), *novel), least_silhouette=0.6)
    assert found.n_novel == n
    clusters = found.cluster.reshape(-1, 20)
    assert all(len(set(members)) == 1 for members in clusters.tolist())
    assert sorted(clusters[:, 0].tolist()) == [-1, -1, *range(n)]


def test_without_novel_instances_nothing_is_found() -> None:
    found = detect(around((-5, 0), (5, 0)))
    assert found.n_novel == 0
    assert found.curve == {}


def test_the_most_novel_instances_make_the_classes_that_are_told() -> None:
    window = around((-5, 0), (5, 0))
    found = detect(window, n_novel=2)
    assert sorted(np.flatnonzero(found.is_novel)) == sorted(np.argsort(-window[:, 1])[:2])
    assert detect(around((0, 30)), n_novel=0).n_novel == 0


def test_no_more_classes_than_k_max() -> None:
    window = around((0, 30), (30, 30), (-30, 60))
    assert set(detect(window, k_max=2).curve) == {1, 2}


def test_without_k_max_the_window_decides_how_many_are_tried() -> None:
    window = around((0, 30), (30, 30), (-30, 60), n=500)
    assert max(detect(window).curve) == 10
    assert max(detect(window, cluster_all=True).curve) == 10
    assert max(detect(window[:100]).curve) == 7


def test_all_instances_can_be_clustered_and_a_cluster_be_novel_by_majority() -> None:
    window = around((-5, 0), (5, 0), (0, 30))
    # The threshold lies inside of the novel cluster: most of its instances are above.
    assert 10 < detect(window, threshold=29.6).is_novel[40:].sum() < 20
    found = detect(window, threshold=29.6, cluster_all=True)
    assert found.is_novel.tolist() == [False] * 40 + [True] * 20
    assert found.n_novel == 1


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_novel_instances_are_counted_in_the_shared_space(n: int) -> None:
    novel = [(0.0, 30.0), (30.0, 30.0), (-30.0, 60.0)][:n]
    window = around((-5, 0), (5, 0), *novel)
    found = detect(window, space="shared")
    assert found.n_novel == n
    assert found.is_novel.tolist() == [False] * 40 + [True] * 20 * n
    assert found.novelty.tolist() == window[:, 1].tolist()


def test_an_instance_that_is_nearest_to_a_known_centre_of_the_shared_space_is_known() -> None:
    window = around((-5, 0), (5, 0), (0, 30))
    found = detect(window, threshold=-10.0, space="shared")  # all are above
    assert found.is_novel.tolist() == [False] * 40 + [True] * 20


def test_the_most_novel_instances_are_clustered_in_the_shared_space_if_too_few_are_novel() -> None:
    window = around((-5, 0), (5, 0))
    found = detect(window, n_novel=2, space="shared")
    assert sorted(np.flatnonzero(found.is_novel)) == sorted(np.argsort(-window[:, 1])[:2])
    assert detect(window, n_novel=0, space="shared").n_novel == 0


def test_all_instances_are_not_clustered_in_the_shared_space() -> None:
    with pytest.raises(BadConfig, match=r"clustering\.cluster_all is True and clustering\.space"):
        make("odin-cnn", clustering__cluster_all=True, clustering__space="shared")
    assert (
        make("odin-cnn", clustering__space="shared").get_params()["clustering__space"] == "shared"
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("k_max", 0), ("space", "common"), ("least_silhouette", 2.0), ("cluster_all", "yes")],
)
def test_what_cannot_work_is_refused(name: str, value: Any) -> None:
    with pytest.raises(BadConfig, match=name):
        check_params(NovelClustering(**{name: value}))
