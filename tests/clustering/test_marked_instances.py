"""Novel classes among marked instances."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from cilf.clustering.marked_instances import MarkedWindow, cluster_marked
from cilf.clustering.novel_clusters import Clustering
from cilf.clustering.p_values import Labelled
from cilf.clustering.unexplained_mass import UnexplainedMass

from .blobs import label, nothing

KNOWN = torch.tensor([[0.0, 0.0, 0.0, 0.0], [12.0, 0.0, 0.0, 0.0], [0.0, 12.0, 0.0, 0.0]])
NOVEL = torch.tensor([[12.0, 12.0, 0.0, 0.0], [0.0, 0.0, 12.0, 0.0], [0.0, 0.0, 0.0, 12.0]])


def around(centres: Tensor, n: int, seed: int) -> Tensor:
    noise = np.random.default_rng(seed).normal(size=(len(centres) * n, 4))
    return centres.repeat_interleave(n, 0) + torch.tensor(noise, dtype=torch.float32)


def make_window(n_novel: int, *, marked_share: float = 0.1, seed: int = 0) -> MarkedWindow:
    """100 instances of each class: novel ones are marked, and a share of the known ones."""
    points = torch.cat([around(KNOWN, 100, seed), around(NOVEL[:n_novel], 100, seed + 50)])
    n_marked = int(100 * marked_share)
    return MarkedWindow(
        points=points,
        is_marked=(torch.arange(len(points)) % 100 < n_marked) | (torch.arange(len(points)) >= 300),
        known=KNOWN,
        memory=label(KNOWN, 60, seed + 200),
        memory_is_marked=torch.arange(180) % 60 < 60 * marked_share,
        held_out=label(KNOWN, 20, seed + 100),
        held_out_is_marked=torch.arange(60) % 20 < 20 * marked_share,
    )


def cluster(
    window: MarkedWindow, n_novel: int | None = None, k_max: int | None = None
) -> Clustering:
    rng = torch.Generator().manual_seed(0)
    return cluster_marked(window, n_novel, k_max=k_max, rule=UnexplainedMass(), generator=rng)


@pytest.mark.parametrize("marked_share", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("n_novel", [0, 1, 2, 3])
def test_clear_clusters_are_counted_right(n_novel: int, marked_share: float) -> None:
    found, _ = cluster(make_window(n_novel, marked_share=marked_share))
    assert found.max() + 1 == n_novel
    groups = found.reshape(-1, 100)
    assert sorted(groups[:, 0].tolist()) == [-1, -1, -1, *range(n_novel)]
    assert (groups == groups[:, :1]).mean() > 0.99


def test_instances_that_are_not_marked_are_known() -> None:
    window = make_window(2)
    half = torch.arange(500) < 350  # of one novel class, and none of the other
    found, _ = cluster(window._replace(is_marked=window.is_marked & half))
    assert (found >= 0).tolist() == ((np.arange(500) >= 300) & half.numpy()).tolist()


def test_known_instances_that_the_detector_marks_make_no_class() -> None:
    """30 % of a known class lie far off and are marked, in the window and labelled."""
    window = make_window(0)
    points = window.points.clone()
    points[270:] += 9.0
    explained = window._replace(
        points=points,
        is_marked=torch.arange(300) >= 270,
        memory=move_end(window.memory, 18),
        memory_is_marked=torch.arange(180) >= 162,
        held_out=move_end(window.held_out, 6),
        held_out_is_marked=torch.arange(60) >= 54,
    )
    assert cluster(explained)[0].max() == -1
    never = {f"{each}_is_marked": torch.zeros(n, dtype=torch.bool)
             for each, n in (("memory", 180), ("held_out", 60))}  # fmt: skip
    assert cluster(explained._replace(**never))[0].max() == 0


def move_end(labelled: Labelled, n: int) -> Labelled:
    """The last ``n`` instances far off."""
    points = labelled.points.clone()
    points[-n:] += 9.0
    return labelled._replace(points=points)


@pytest.mark.parametrize("n_novel", [0, 2])
def test_the_memory_or_held_out_instances_may_be_missing(n_novel: int) -> None:
    window, no_marks = make_window(n_novel), torch.zeros(0, dtype=torch.bool)
    no_memory = window._replace(
        memory=nothing(4), memory_is_marked=no_marks,
        held_out=label(KNOWN, 60, 7), held_out_is_marked=torch.arange(180) % 60 < 6,
    )  # fmt: skip
    nothing_held_out = window._replace(held_out=nothing(4), held_out_is_marked=no_marks)
    for each in (no_memory, nothing_held_out):
        assert cluster(each)[0].max() + 1 == n_novel


@pytest.mark.parametrize("n_novel", [1, 2, 5])
def test_as_many_clusters_as_are_given_and_none_is_empty(n_novel: int) -> None:
    found, curve = cluster(make_window(2), n_novel)
    assert set(found.tolist()) == {-1, *range(n_novel)}
    assert curve == {}
    alike = make_window(0)._replace(points=torch.zeros(300, 4))  # all nearest to a known centre
    assert set(cluster(alike, n_novel)[0].tolist()) == {-1, *range(n_novel)}


def test_nothing_is_found_where_nothing_is_marked_or_wanted() -> None:
    window = make_window(2)
    unmarked = window._replace(is_marked=torch.zeros(500, dtype=torch.bool))
    for found, curve in (cluster(unmarked), cluster(window, 0)):
        assert (found == -1).all()
        assert curve == {}


def test_the_window_and_the_marked_instances_bound_the_numbers_that_are_tried() -> None:
    window = make_window(3)
    assert max(cluster(window)[1]) == 64
    assert max(cluster(window, k_max=2)[1]) == 2
    few = torch.arange(600) >= 597
    assert max(cluster(window._replace(is_marked=few))[1]) == 3
