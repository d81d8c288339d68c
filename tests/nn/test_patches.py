from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from cilf.nn.patches import PatchDictionary, spherical_kmeans


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def striped(n: int, across: bool, seed: int = 0, side: int = 16) -> Tensor:
    """Images of stripes, at random places, with noise."""
    rng = np.random.default_rng(seed)
    places = np.arange(side) + rng.integers(0, 4, (n, 1))
    stripes = (places % 4 < 2).astype(np.float32)[:, None, :]  # (n, 1, side)
    images = np.repeat(stripes, side, 1)
    if across:
        images = images.transpose(0, 2, 1)
    noisy = images + rng.normal(0, 0.2, images.shape)
    return torch.from_numpy(noisy[:, None].astype(np.float32) - 0.5)


def learned(x: Tensor, seed: int = 0) -> PatchDictionary:
    dictionary = PatchDictionary(tuple(x.shape[1:]))
    dictionary.learn(x, seeded(seed))
    return dictionary


def test_images_that_differ_in_their_parts_are_told_apart_without_labels() -> None:
    x = torch.cat([striped(40, True), striped(40, False)])
    seen = learned(x)(x)
    first, second = seen[:40].mean(0), seen[40:].mean(0)
    nearer = (seen - first).norm(dim=1) < (seen - second).norm(dim=1)
    assert torch.equal(nearer, torch.arange(80) < 40)


def test_strengths_are_standardised_on_the_images_they_were_learned_from() -> None:
    x = striped(60, True)
    seen = learned(x)(x)
    assert seen.shape == (60, 1024)
    assert torch.allclose(seen.mean(0), torch.zeros(1024), atol=1e-3)
    assert float(seen.std(0, correction=0).max()) <= 1.0


def test_brightness_and_contrast_hardly_matter() -> None:
    x = striped(30, True)
    dictionary = learned(x)
    assert torch.allclose(dictionary(x), dictionary(3 * x + 2), atol=0.5)


def test_equal_draws_make_equal_dictionaries() -> None:
    x = striped(30, True)
    assert torch.equal(learned(x).filters, learned(x).filters)
    assert not torch.equal(learned(x).filters, learned(x, seed=1).filters)


@pytest.mark.parametrize(
    "shape", [(1, 8, 8), (3, 32, 32), (3, 96, 40), (1, 3, 2), (1, 1, 1), (2, 224, 224)]
)
def test_images_of_any_size_have_strengths(shape: tuple[int, ...]) -> None:
    x = torch.randn(4, *shape, generator=seeded())
    assert bool(torch.isfinite(learned(x)(x)).all())
    assert learned(x)(x).shape == (4, 1024)


def test_no_images_have_no_strengths() -> None:
    assert learned(striped(9, True))(striped(0, True)).shape == (0, 1024)


def test_one_by_one_is_as_all_together() -> None:
    x = striped(300, True)
    dictionary = learned(x)
    single = torch.cat([dictionary(image[None]) for image in x[:5]])
    assert torch.allclose(dictionary(x)[:5], single, atol=1e-4)


def test_spherical_kmeans_finds_the_lines_that_points_lie_along() -> None:
    axes = torch.eye(3)
    along = torch.randn(300, 1, generator=seeded())
    points = along * axes[torch.arange(300) % 3] + 0.01 * torch.randn(300, 3, generator=seeded(1))
    found = spherical_kmeans(points, 8, seeded(2))
    assert torch.allclose(found.norm(dim=1), torch.ones(8))
    assert float((found @ axes).abs().amax(0).min()) > 0.99
