"""The space that is clustered."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from cilf.nn.space import Space, _main_directions


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


NOBODY = torch.zeros(0, dtype=torch.int64)


def means_of(views: list[Tensor], labels: Tensor) -> list[Tensor]:
    """The mean of each class in each view."""
    classes = range(int(labels.max()) + 1)
    return [torch.stack([view[labels == c].mean(0) for c in classes]) for view in views]


def fit(known: list[Tensor], labels: Tensor, window: list[Tensor], **settings: float) -> Space:
    """The space with the means of the known classes as their centres."""
    return Space.fit(known, labels, window, means_of(known, labels), **settings)


def test_views_are_scaled_to_spread_equally() -> None:
    views = [0.1 * normal(200, 3), 50 * normal(200, 8, seed=1)]
    labels = torch.zeros(200, dtype=torch.int64)
    space = fit(views, labels, [view[:0] for view in views], size=11, whitening=0.0)
    for view, scale in zip(views, space.scales, strict=True):
        spread = ((view - view.mean(0)) / scale).square().sum(1).mean().sqrt()
        assert float(spread) == pytest.approx(1.0, rel=1e-4)


def test_distances_stay_in_proportion_without_whitening_and_with_all_directions() -> None:
    known, window = normal(60, 5), normal(40, 5, seed=1)
    labels = torch.arange(60) % 3
    space = fit([known], labels, [window], size=5, whitening=0.0)
    ratio = torch.pdist(space.transform([window])) / torch.pdist(window)
    assert float(ratio.std() / ratio.mean()) < 1e-4


def test_whole_whitening_makes_the_covariance_within_classes_the_identity() -> None:
    labels = torch.arange(600) % 3
    stretched = normal(600, 4) * torch.tensor([10.0, 1.0, 0.1, 3.0]) + 20 * labels[:, None]
    space = fit([stretched], labels, [stretched[:50]], size=4, whitening=1.0)
    points = space.transform([stretched]).numpy()
    centred = np.concatenate([points[labels == c] - points[labels == c].mean(0) for c in range(3)])
    np.testing.assert_allclose(centred.T @ centred / 600, np.eye(4), atol=1e-3)


def test_directions_of_the_window_are_kept_where_known_data_do_not_vary() -> None:
    known = normal(100, 20) * torch.tensor([1.0] * 3 + [1e-3] * 17)
    window = known.clone()
    window[:50, 10] += 5  # what is new lies where no known class goes
    space = fit([known], torch.arange(100) % 2, [window], size=4, whitening=0.5)
    points = space.transform([window])
    gap = torch.linalg.vector_norm(points[:50].mean(0) - points[50:].mean(0))
    assert float(gap) > 3 * float(points[50:].std(0).max())


def test_known_centres_are_the_means_of_their_instances() -> None:
    views, labels = [normal(90, 6), normal(90, 9, seed=1)], torch.arange(90) % 3
    space, means = fit(views, labels, views, size=5, whitening=0.5), means_of(views, labels)
    points = space.transform(views)
    wanted = torch.stack([points[labels == c].mean(0) for c in range(3)])
    assert torch.allclose(space.transform(means), wanted, atol=1e-4)


def test_without_labelled_instances_the_window_alone_decides() -> None:
    window = normal(30, 6)
    space = Space.fit([window[:0]], NOBODY, [window], [window[:3]], size=2, whitening=0.5)
    points = space.transform([window])
    assert points.shape == (30, 2)
    centred = (window - window.mean(0)).numpy()
    largest = np.linalg.svd(centred, compute_uv=False)[:2]
    ours = np.linalg.svd((points - points.mean(0)).numpy(), compute_uv=False)
    np.testing.assert_allclose(ours / ours[0], largest / largest[0], rtol=1e-3)


def test_views_that_do_not_vary_do_no_harm() -> None:
    flat = torch.ones(20, 3)
    space = fit([flat], torch.arange(20) % 2, [flat], size=3, whitening=1.0)
    assert space.scales == (1.0,)
    assert torch.isfinite(space.transform([flat])).all()


CENTRES = 6 * torch.eye(30)[:3]


def draw(sizes: list[int], seed: int) -> tuple[Tensor, Tensor]:
    """Instances of three classes in many dimensions, most of which do not matter."""
    labels = torch.arange(3).repeat_interleave(torch.tensor(sizes))
    spread = torch.linspace(1.0, 0.05, 30)
    return CENTRES[labels] + spread * normal(len(labels), 30, seed=seed), labels


def fit_to(window: Tensor) -> Space:
    known, labels = draw([60, 60, 60], seed=0)
    return fit([known], labels, [window], size=8, whitening=0.5)


@pytest.mark.parametrize("sizes", [[150, 0, 0], [0, 0, 150], [100, 49, 1], [3, 0, 2]])
def test_the_proportions_of_known_classes_do_not_change_the_space(sizes: list[int]) -> None:
    """Distances of labelled instances change by as much as by other instances of equal classes."""
    points = draw([40, 40, 40], seed=9)[0]
    usual, again, other = (
        torch.pdist(fit_to(draw(each, seed)[0]).transform([points]))
        for each, seed in (([50, 50, 50], 1), ([50, 50, 50], 2), (sizes, 3))
    )
    by_chance = float((again / usual - 1).abs().mean())
    assert float((other / usual - 1).abs().mean()) < max(0.05, 2 * by_chance)


@pytest.mark.parametrize("n_known", [0, 20, 150])
def test_a_novel_direction_shows_whatever_known_classes_are_there(n_known: int) -> None:
    known = draw([n_known, 0, 0], seed=1)[0]
    novel = draw([0, 40, 0], seed=2)[0] + 5 * torch.eye(30)[29]  # where known classes hardly vary
    with_novel, without = fit_to(torch.cat([known, novel])), fit_to(draw([50, 50, 50], seed=1)[0])
    fresh = draw([0, 40, 0], seed=3)[0]
    gaps = [
        float((space.transform([novel]).mean(0) - space.transform([fresh]).mean(0)).norm())
        for space in (with_novel, without)
    ]
    assert gaps[0] > 4 * gaps[1]


def test_of_many_dimensions_the_main_ones_are_found_without_the_whole_covariance() -> None:
    rng = torch.Generator().manual_seed(0)
    spreads = torch.linspace(3, 0.3, 300).square()
    points = torch.randn(500, 300, generator=rng) * spreads
    centred = points - points.mean(0)
    found = _main_directions(centred, 16)
    _, vectors = torch.linalg.eigh(centred.T @ centred)
    best = (centred @ vectors[:, -16:]).square().sum()
    assert torch.allclose(found.T @ found, torch.eye(16), atol=1e-4)
    assert float((centred @ found).square().sum() / best) > 0.99  # the spread falls slowly here
