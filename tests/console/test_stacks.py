from __future__ import annotations

import numpy as np
import pytest

from cilf.console.stacks import stack_pictures, stack_vectors


@pytest.mark.parametrize("shape", [(8, 8), (48, 31), (40, 40, 3)])
def test_a_noisy_or_brighter_copy_is_a_near_duplicate(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 250, (30, *shape)).astype(float)
    pictures[20] = pictures[3] + rng.normal(0, 2, shape)
    pictures[25] = pictures[3] + 3
    stack = stack_pictures(pictures.clip(0, 255).astype(np.uint8))
    expected = np.arange(30)
    expected[[20, 25]] = 3
    np.testing.assert_array_equal(stack, expected)


def test_dark_pictures_of_different_things_are_no_near_duplicates() -> None:
    dark = np.random.default_rng(0).integers(0, 5, (6, 16, 16), dtype=np.uint8)
    np.testing.assert_array_equal(stack_pictures(dark), np.arange(6))


def test_the_same_vectors() -> None:
    rows = np.array([[2.0, 1.0], [0.0, 0.0], [2.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
    assert stack_vectors(rows).tolist() == [0, 1, 0, 3, 1]
