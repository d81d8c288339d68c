from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from cilf.clustering.kmeans import Clusters
from cilf.clustering.p_values import Labelled
from cilf.learners.cilf import window_head
from cilf.learners.cilf.decision import Scores, decide, measure_novelty
from cilf.learners.cilf.window_head import WindowHead, add_excess, fit_kernel

KNOWN = torch.tensor([[0.0, 0.0], [6.0, 0.0]])
NOVEL = torch.tensor([[0.0, 4.0], [6.0, 4.0]])


def blobs(centres: Tensor, n: int, seed: int) -> Tensor:
    noise = torch.randn(len(centres) * n, 2, generator=torch.Generator().manual_seed(seed))
    return centres.repeat_interleave(n, 0) + noise


def start(window: Tensor, labelled: Labelled, known: Tensor = KNOWN) -> WindowHead:
    return WindowHead.start(window, known, labelled, torch.Generator().manual_seed(0))


@pytest.fixture
def labelled() -> Labelled:
    return Labelled(blobs(KNOWN, 50, 1), torch.arange(2).repeat_interleave(50))


@pytest.fixture
def window() -> Tensor:
    return torch.cat([blobs(KNOWN, 50, 2), blobs(NOVEL, 30, 3)])


def test_a_prediction_is_that_of_a_regression_on_all_others(
    window: Tensor, labelled: Labelled
) -> None:
    head = start(window, labelled)
    targets = torch.randn(len(head.features), 1, generator=torch.Generator().manual_seed(4))
    found = head.leave_out(targets)[:, 0].double().numpy()
    features, weights = head.features.double().numpy(), head.weights.double().numpy()
    mean = float(weights @ targets[:, 0].numpy() / weights.sum())
    for i in (0, 60, 150, 250):
        others = np.delete(np.arange(len(features)), i)
        weighted = features[others] * weights[others, None]
        gram = weighted.T @ features[others] + window_head.RIDGE * np.eye(features.shape[1])
        weight = np.linalg.solve(gram, weighted.T @ (targets[others, 0].numpy() - mean))
        assert found[i] == pytest.approx(mean + features[i] @ weight, abs=1e-3)


def test_kernel_features_of_all_landmarks_have_the_kernel_as_products(window: Tensor) -> None:
    _, features = fit_kernel(window, torch.Generator())
    squares = torch.cdist(window, window).square()
    assert torch.allclose(features @ features.T, torch.exp(-squares / squares.median()), atol=1e-3)


@pytest.mark.parametrize("far", [1e3, 1e5])
def test_kernel_features_bear_points_far_from_the_origin(window: Tensor, far: float) -> None:
    """One outlier among the labelled instances moves the origin that far from all others."""
    offset = torch.full((1, 2), far)
    grid = (window * 16).round() / 16  # adding the offset rounds nothing
    near, moved = (fit_kernel(x, torch.Generator())[1] for x in (grid, grid + offset))
    assert torch.allclose(moved @ moved.T, near @ near.T, atol=1e-3)
    _, with_outliers = fit_kernel(torch.cat([grid + offset, -offset]), torch.Generator())
    assert bool(torch.isfinite(with_outliers).all())


def test_few_landmarks_come_close(
    window: Tensor, labelled: Labelled, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = start(window, labelled).excess(0).window
    monkeypatch.setattr(window_head, "N_LANDMARKS", 40)
    few = start(window, labelled)
    assert few.features.shape[1] == 40
    assert np.corrcoef(whole, few.excess(0).window)[0, 1] > 0.99


def test_the_excess_tells_novel_instances_that_overlap(window: Tensor, labelled: Labelled) -> None:
    excess = start(window, labelled).excess(20)
    assert excess.held_out.shape == (20,)
    is_novel = np.arange(len(window)) >= 100
    assert roc_auc_score(is_novel, excess.window) > 0.93


def test_proportions_of_known_classes_are_no_excess(labelled: Labelled) -> None:
    window = torch.cat([blobs(KNOWN[:1], 190, 5), blobs(KNOWN[1:], 10, 6)])
    excess = start(window, labelled).excess(0).window
    assert abs(float(excess[:190].mean()) - float(excess[190:].mean())) < 0.15


def test_the_head_decides_better_than_the_nearest_centre(
    window: Tensor, labelled: Labelled
) -> None:
    # the centre of the novel class lies too near to the first known class
    clusters = Clusters(torch.cat([KNOWN, NOVEL - 0.8]), torch.zeros(160, dtype=torch.int64), 2)
    truth = torch.cat([torch.full((100,), -1), torch.arange(2).repeat_interleave(30)])
    head = start(window, labelled)
    margins = Scores(measure_novelty(window, clusters), measure_novelty(labelled.points, clusters))
    scores = add_excess(margins, head.excess(100), 0.5)
    by_head = head.decide(window, clusters, margins.window, scores.window, 0.0, n_rounds=2).cluster
    by_centre = decide(window, clusters, 0.0).cluster
    assert (by_head == truth).float().mean() > (by_centre == truth).float().mean()


def test_between_the_threshold_and_zero_the_head_must_agree(
    window: Tensor, labelled: Labelled
) -> None:
    clusters = Clusters(torch.cat([KNOWN, NOVEL]), torch.zeros(160, dtype=torch.int64), 2)
    head, score = start(window, labelled), torch.full((len(window),), -0.5)

    def share_novel(margin: float) -> tuple[float, float]:
        margins = torch.full_like(score, margin)
        found = head.decide(window, clusters, margins, score, -1.0, n_rounds=1).cluster >= 0
        return float(found[:100].float().mean()), float(found[100:].float().mean())

    known, novel = share_novel(margin=-0.1)  # the excess speaks against all of them
    assert known < 0.4
    assert novel > 0.8
    assert share_novel(margin=-0.9) == (1.0, 1.0)  # the excess speaks for all of them


def test_without_rounds_clusters_are_those_of_the_nearest_centres(
    window: Tensor, labelled: Labelled
) -> None:
    clusters = Clusters(torch.cat([KNOWN, NOVEL]), torch.zeros(160, dtype=torch.int64), 2)
    margins = measure_novelty(window, clusters)
    found = start(window, labelled).decide(window, clusters, margins, margins, 0.0, n_rounds=0)
    assert torch.equal(found.cluster, decide(window, clusters, 0.0).cluster)


def test_a_window_whose_instances_are_all_alike_keeps_its_margins(labelled: Labelled) -> None:
    window = torch.ones(5, 2)
    margins = Scores(torch.arange(5.0), torch.arange(3.0))
    assert add_excess(margins, start(window, labelled).excess(3), 0.5) is margins


def test_one_instance_is_enough(labelled: Labelled) -> None:
    assert torch.isfinite(start(torch.zeros(1, 2), labelled).excess(0).window).all()


@pytest.mark.parametrize("far", [0.0, 1e4])
def test_what_was_learned_holds_for_other_instances(far: float) -> None:
    known = KNOWN + far
    labelled = Labelled(blobs(known, 50, 1), torch.arange(2).repeat_interleave(50))
    window = torch.cat([blobs(known, 50, 2), blobs(NOVEL + far, 30, 3)])
    head = start(window, labelled, known)
    assignment = torch.arange(4).repeat_interleave(torch.tensor([50, 50, 30, 30]))
    found = head.generalise(assignment, 4).predict(window)
    targets = torch.cat([torch.ones(160, 1), torch.eye(4)[assignment]], 1)
    without = torch.cat([head.excess(0).window[:, None], head.classify(assignment, 4)], 1)
    rest = (targets - without) * (1 - head._leverage[:160, None])  # of a fit with the instance
    assert torch.allclose(found, targets - rest, atol=0.02)
