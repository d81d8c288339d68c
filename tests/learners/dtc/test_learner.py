"""Deep transfer clustering: its computations by hand, the count of classes, blobs found."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from cilf.core.types import Array
from cilf.errors import BadConfig
from cilf.learners import make
from cilf.learners.dtc import class_count
from cilf.learners.dtc.deep_clustering import (
    Tuning,
)
from cilf.learners.dtc.learner import DTC
from cilf.nn.training import Training

PLAIN = Training(augmentation=None)

CORNERS = [[-4.0, -4.0], [4.0, -4.0], [-4.0, 4.0], [4.0, 4.0], [0.0, 9.0], [0.0, -9.0]]


def blobs(centres: list[list[float]], n: int = 30, seed: int = 0, width: float = 0.4) -> Array:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(c, width, size=(n, 2)) for c in centres]).astype(np.float32)


@pytest.fixture(scope="module")
def fitted() -> DTC:
    X = blobs(CORNERS[:3], n=60, seed=1)
    learner = DTC(epochs=10, training=Training(batch_size=32), tuning=Tuning(sharpen_epochs=20))
    return learner.fit(X, np.repeat([0, 1, 2], 60))


@pytest.mark.parametrize("n_novel", [0, 1, 2])
def test_novel_blobs_are_found(fitted: DTC, n_novel: int) -> None:
    # Between and beyond the known classes, where the classifier is uncertain.
    novel = [[0.0, 0.0], [4.5, 1.0]][:n_novel]
    X = blobs(CORNERS[:3] + novel, seed=5)
    found = fitted.detect(X)
    truth = np.repeat(np.arange(3 + n_novel), 30)
    assert found.n_novel == n_novel
    assert float(np.mean(found.is_novel == (truth >= 3))) > 0.95
    assert float(np.mean(found.label[truth < 3] == truth[truth < 3])) > 0.95
    if n_novel:
        rows = truth >= 3
        assert class_count.clustering_accuracy(truth[rows], found.cluster[rows]) > 0.95
        assert found.novelty[rows].min() > np.quantile(found.novelty[~rows], 0.9)


def test_the_window_is_tuned_until_it_falls_into_clusters(fitted: DTC) -> None:
    X = blobs([*CORNERS[:3], [0.0, 0.0]], seed=5, width=0.8)
    untuned = copy.copy(fitted).set_params(tuning__warmup_epochs=0, tuning__sharpen_epochs=0)
    plain, tuned = (each.detect(X, n_novel=1) for each in (untuned, fitted))
    assert tuned.embedding is not None
    assert not np.allclose(tuned.embedding, plain.embedding, atol=0.1)


def n_clusters(learner: DTC, X: Array) -> int:
    """The bottleneck has a direction for each."""
    embedding = learner.detect(X).embedding
    assert embedding is not None
    return int(embedding.shape[1])


def test_clusters_are_those_that_are_filled(fitted: DTC) -> None:
    quick = copy.copy(fitted).set_params(
        counting__k_max=2, tuning__warmup_epochs=0, tuning__sharpen_epochs=0
    )
    assert n_clusters(quick, blobs(CORNERS[:3], seed=5)) == 3
    gone = blobs([CORNERS[0], [0.0, 0.0]], seed=5)  # two known classes are
    assert n_clusters(quick, gone) == 2
    uneven = np.concatenate([blobs(CORNERS[:2], 40, seed=5), blobs(CORNERS[2:3], 10, seed=5)])
    assert [
        n_clusters(copy.copy(quick).set_params(counting__least_ratio=ratio), uneven)
        for ratio in (0.2, 0.3)
    ] == [3, 2]


def test_the_largest_cluster_counts_at_any_ratio(fitted: DTC) -> None:
    X = np.concatenate([blobs(CORNERS[:1], 40, seed=5), blobs(CORNERS[1:3], 10, seed=5)])
    strict = copy.copy(fitted).set_params(
        counting__least_ratio=1.0, counting__k_max=2, tuning__sharpen_epochs=1
    )
    assert n_clusters(strict, X) == 1


def test_the_number_of_novel_classes_is_that_of_the_estimate(fitted: DTC) -> None:
    """Clusters beyond the known classes are novel, however certain the classifier is of them."""
    sure = copy.copy(fitted).set_params(accepted_share=1.0)
    X = blobs([*CORNERS[:3], [-9.0, -9.0]], seed=5)  # behind a known class: nothing is uncertain
    found = sure.detect(X)
    assert not sure._score_window(X).is_novel[90:].any()
    assert found.n_novel == n_clusters(sure, X) - 3 == 1


def test_known_classes_that_are_gone_hide_no_novel_one(fitted: DTC) -> None:
    found = fitted.detect(blobs([CORNERS[0], [0.0, 0.0]], seed=5))
    assert found.n_novel == 1
    assert found.is_novel.tolist() == [False] * 30 + [True] * 30


def test_novelty_does_not_depend_on_the_number_of_novel_classes(fitted: DTC) -> None:
    X = blobs([*CORNERS[:3], [0.0, 0.0], [4.5, 1.0]], seed=5)
    first, *others = (fitted.detect(X, n_novel).novelty for n_novel in (None, 0, 1, 3))
    for novelty in others:
        np.testing.assert_allclose(novelty, first)
    truth = np.arange(150) >= 90
    assert first[truth].mean() > first[~truth].mean() + 0.3


def test_novel_instances_can_be_clustered_in_the_shared_space(fitted: DTC) -> None:
    shared = copy.copy(fitted).set_params(space="shared")
    X = blobs([*CORNERS[:3], [0.0, 0.0], [4.5, 1.0]], seed=5)
    own, found = fitted.detect(X), shared.detect(X)
    assert not (found.is_novel & ~own.is_novel).any()
    assert np.array_equal(found.novelty, own.novelty)
    assert found.n_novel == 2
    assert class_count.clustering_accuracy(np.arange(150)[90:] // 30, found.cluster[90:]) > 0.95
    assert [shared.detect(X, n_novel=n).n_novel for n in (0, 1, 3)] == [0, 1, 3]


def test_count_that_is_given_is_used(fitted: DTC) -> None:
    found = fitted.detect(blobs(CORNERS[:3], seed=5), n_novel=2)
    assert found.n_novel == 2
    assert found.curve == {}


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("tuning__variant", "tepp"), ("counting__rule", "best"), ("tuning__refresh", 0),
     ("counting__tie", 2.0), ("tuning__tolerance", -1.0), ("space", "common"),
     ("counting__k_max", 0)],
)  # fmt: skip
def test_what_cannot_work_is_refused(parameter: str, value: object) -> None:
    with pytest.raises(BadConfig, match=parameter.replace("__", ".")):
        make("dtc", **{parameter: value})
