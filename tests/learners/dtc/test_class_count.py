"""Deep transfer clustering: its computations by hand, the count of classes, blobs found."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cilf.clustering.kmeans import semi_supervised_kmeans
from cilf.core.random import torch_generator
from cilf.core.types import Array
from cilf.learners.dtc import class_count
from cilf.learners.dtc.class_count import Clustering, Counting, Probes
from cilf.nn.training import Training

PLAIN = Training(augmentation=None)

CORNERS = [[-4.0, -4.0], [4.0, -4.0], [-4.0, 4.0], [4.0, 4.0], [0.0, 9.0], [0.0, -9.0]]


def blobs(centres: list[list[float]], n: int = 30, seed: int = 0, width: float = 0.4) -> Array:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(c, width, size=(n, 2)) for c in centres]).astype(np.float32)


def slow_semi_supervised_kmeans(free: Array, labelled: list[Array], start: Array) -> Array:
    """Centres, one after the other; labelled instances count in their own class."""
    centres = start.copy()
    for _ in range(50):
        nearest = np.array([np.argmin([((z - c) ** 2).sum() for c in centres]) for z in free])
        for k in range(len(centres)):
            members = list(free[nearest == k]) + (list(labelled[k]) if k < len(labelled) else [])
            if members:
                centres[k] = np.mean(members, axis=0)
    return centres


def test_labelled_instances_count_in_kmeans_as_they_do_one_by_one() -> None:
    rng = np.random.default_rng(3)
    labelled = [rng.normal(c, 0.5, size=(n, 2)) for c, n in (((0, 0), 5), ((4, 0), 9))]
    drifted = ((0.7, 0.3), (4.2, 0.9), (0, 6))
    free = np.concatenate([rng.normal(c, 0.5, size=(8, 2)) for c in drifted])
    means = np.stack([each.mean(0) for each in labelled])
    found = semi_supervised_kmeans(
        torch.from_numpy(free), torch.from_numpy(means), 1,
        known_sizes=torch.tensor([5.0, 9.0]), generator=torch_generator(0, "test"), n_steps=100,
    )  # fmt: skip
    start = np.concatenate([means, free[-1:]])
    slow = slow_semi_supervised_kmeans(free, labelled, start)
    np.testing.assert_allclose(found.centres.numpy(), slow, atol=1e-6)


def cluster_blobs(n_novel: int, n_known: int = 3, k_max: int = 4) -> dict[int, list[Clustering]]:
    known, there = CORNERS[:n_known], CORNERS[: n_known + n_novel]
    probes = Probes(
        torch.from_numpy(blobs(known, seed=1)), np.repeat(np.arange(n_known), 30), n_known
    )
    window = torch.from_numpy(blobs(there, seed=2))
    return Counting().cluster(window, probes, range(k_max + 1), torch_generator(0, "test"))


@pytest.mark.parametrize("rule", class_count.RULES)
@pytest.mark.parametrize("n_novel", [0, 1, 2, 3])
def test_classes_of_separate_blobs_are_counted(n_novel: int, rule: str) -> None:
    clusterings = cluster_blobs(n_novel)
    assert Counting(rule=rule).choose(clusterings) == n_novel
    for each in clusterings[n_novel]:
        assert each.accuracy == 1.0
        assert len(class_count.find_filled(each.assignment, 0.01)) == 3 + n_novel
    assert Counting().count_filled(clusterings[n_novel]) == 3 + n_novel
    assert Counting().count_novel(clusterings[n_novel]) == n_novel


def test_known_classes_that_are_gone_are_no_clusters_and_hide_no_novel_one() -> None:
    probes = Probes(torch.from_numpy(blobs(CORNERS[:3], seed=1)), np.repeat(np.arange(3), 30), 3)
    window = torch.from_numpy(blobs([CORNERS[0], CORNERS[3]], seed=2))
    clusterings = Counting().cluster(window, probes, [1], torch_generator(0, "test"))
    filled = [class_count.find_filled(each.assignment, 0.01) for each in clusterings[1]]
    assert [len(clusters) for clusters in filled] == [2, 2, 2]
    assert Counting().count_filled(clusterings[1]) == 2
    assert Counting().count_novel(clusterings[1]) == 1


def test_a_split_known_class_is_counted_as_novel_but_never_fewer_than_none() -> None:
    clusterings = cluster_blobs(n_novel=0)
    assert Counting().count_novel(clusterings[1]) == 1
    few = [each._replace(assignment=np.zeros(5, dtype=np.int64)) for each in clusterings[0]]
    assert Counting().count_novel(few) == 0


def test_clusters_are_matched_as_many_as_there_are() -> None:
    truth, cluster = np.array([7, 7, 8, 8, 9]), np.array([1, 1, 1, 4, 1])
    assert class_count.match_clusters(truth, cluster) == {7: 1, 8: 4}
    assert class_count.clustering_accuracy(truth, cluster) == pytest.approx(3 / 5)
    assert class_count.match_clusters(truth[:0], cluster[:0]) == {}


def test_the_average_of_both_numbers_is_rounded_up_and_ties_go_to_the_larger() -> None:
    none = np.zeros(0, dtype=np.int64)
    measures = {0: (0.5, 0.9), 1: (0.4, 0.9), 2: (0.5, 0.8), 3: (0.1, 0.9), 4: (0.2, 0.1)}
    curves = {k: [Clustering(none, *both)] for k, both in measures.items()}
    assert Counting(rule="silhouette", tie=0.0).choose(curves) == 2
    assert Counting(rule="accuracy", tie=0.0).choose(curves) == 3
    assert Counting(rule="average", tie=0.0).choose(curves) == 3
    assert Counting(rule="accuracy", tie=0.8).choose(curves) == 4


def test_without_labelled_instances_the_silhouette_decides() -> None:
    probes = Probes(torch.zeros(0, 2), np.zeros(0, dtype=np.int64), 2)
    window = torch.from_numpy(blobs(CORNERS[:3], seed=2))
    clusterings = Counting().cluster(window, probes, range(4), torch_generator(0, "test"))
    assert Counting(rule="average").choose(clusterings) == 1


def test_every_class_is_once_for_validation() -> None:
    y = np.repeat(np.arange(5), 2)
    splits = list(class_count.anchor_splits(y, 0.6, n_splits=9))
    assert [int(split.sum()) for split in splits] == [6, 6, 6]
    assert bool(np.logical_or.reduce([~split for split in splits]).all())


def test_filled_is_what_holds_the_share_and_never_what_is_empty() -> None:
    assignment = np.repeat([0, 1, 3], [10, 5, 1])  # 2 is empty
    filled = {
        ratio: sorted(class_count.find_filled(assignment, ratio))
        for ratio in (0.0, 0.1, 0.11, 0.5, 1)
    }
    assert filled == {0.0: [0, 1, 3], 0.1: [0, 1, 3], 0.11: [0, 1], 0.5: [0, 1], 1: [0]}
