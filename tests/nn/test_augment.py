from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import product

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from cilf.errors import BadConfig
from cilf.nn.augment import (
    AUGMENTATIONS,
    make_augmentation,
    random_flip,
    random_shift,
    random_shift_flip,
)

SHAPES = [(1, 8, 8), (3, 16, 24), (1, 1, 1), (3, 2, 3)]


def images(n: int, shape: tuple[int, ...] = (1, 8, 8)) -> Tensor:
    """uint8 images, no two pixels of which are likely to be equal."""
    generator = torch.Generator().manual_seed(7)
    return torch.randint(256, (n, *shape), generator=generator, dtype=torch.uint8)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def moved(image: Tensor, down: int, right: int) -> Tensor:
    """The image moved; what comes in repeats the nearest edge pixel."""
    _, height, width = image.shape
    rows = [min(max(row - down, 0), height - 1) for row in range(height)]
    columns = [min(max(column - right, 0), width - 1) for column in range(width)]
    return image[:, rows][:, :, columns]


def reach(side: int) -> range:
    most = max(1, round(side / 8))
    return range(-most, most + 1)


@pytest.mark.parametrize("name", AUGMENTATIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_shape_stays_and_no_value_is_made_up(name: str, shape: tuple[int, ...]) -> None:
    x = images(6, shape)
    out = AUGMENTATIONS[name](x, seeded())
    assert out.shape == x.shape
    for before, after in zip(x, out, strict=True):
        assert set(after.unique().tolist()) <= set(before.unique().tolist())


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_the_generator_decides(
    name: str, untouched: Callable[[], AbstractContextManager[None]]
) -> None:
    x, augment = images(20), AUGMENTATIONS[name]
    with untouched():
        first, again, other = (augment(x, seeded(seed)) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_the_images_handed_in_stay(name: str) -> None:
    x = images(10)
    before = x.clone()
    AUGMENTATIONS[name](x, seeded())
    assert torch.equal(x, before)


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_channels_last_stays(name: str) -> None:
    x = images(4, (3, 8, 8)).to(memory_format=torch.channels_last)
    out = AUGMENTATIONS[name](x, seeded())
    assert out.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 16, 24)])
def test_shift_moves_each_image_by_at_most_an_eighth_and_repeats_its_edge(
    shape: tuple[int, ...],
) -> None:
    _, height, width = shape
    x = images(60, shape)
    steps = list(product(reach(height), reach(width)))
    seen = set()
    for before, after in zip(x, random_shift(x, seeded()), strict=True):
        matches = [step for step in steps if torch.equal(moved(before, *step).float(), after)]
        assert len(matches) == 1
        seen.update(matches)
    assert {down for down, _ in seen} == set(reach(height))
    assert {right for _, right in seen} == set(reach(width))


def test_shift_by_another_share() -> None:
    x = F.pad(torch.full((200, 1, 1, 1), 9.0), (4, 4, 4, 4))  # one pixel amid a 9 x 9 image
    places = random_shift(x, seeded(), share=1 / 3).nonzero()[:, 2:]
    assert (places.amin(0).tolist(), places.amax(0).tolist()) == ([1, 1], [7, 7])


def test_flip_mirrors_about_half_of_the_images() -> None:
    x = images(400)
    out = random_flip(x, seeded())
    flipped = 0
    for before, after in zip(x, out, strict=True):
        mirrored = torch.equal(after, before.flip(2))
        assert mirrored or torch.equal(after, before)
        flipped += mirrored
    assert 150 < flipped < 250  # five standard deviations around 200
    assert out.dtype == x.dtype


def test_shift_flip_does_both() -> None:
    x = images(60)
    steps = list(product(reach(8), reach(8)))
    kinds = set()
    for before, after in zip(x, random_shift_flip(x, seeded()), strict=True):
        still = any(torch.equal(moved(before, *step).float(), after) for step in steps)
        mirrored = any(torch.equal(moved(before, *step).float(), after.flip(2)) for step in steps)
        assert still != mirrored
        kinds.add(mirrored)
    assert kinds == {True, False}


def test_no_name_and_no_images_mean_no_augmentation() -> None:
    assert make_augmentation(None, images(2)) is None
    assert make_augmentation("shift", torch.zeros(2, 5)) is None
    assert make_augmentation("shift", images(2)) is random_shift


@pytest.mark.parametrize("x", [images(2), torch.zeros(2, 5)], ids=["images", "vectors"])
def test_an_unknown_name_is_answered_with_the_nearest(x: Tensor) -> None:
    with pytest.raises(BadConfig, match=r"unknown augmentation 'shfit': did you mean 'shift'\?"):
        make_augmentation("shfit", x)
