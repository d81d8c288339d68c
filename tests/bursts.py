"""Made-up scenes, and bursts of frames of them."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter

from cilf.core.types import Array, Ints

SIDE = 32


def make_scenes(n: int, *, seed: int) -> Array:
    """Smooth colour images (n, 32, 32, 3), each unlike the others."""
    noise = np.random.default_rng(seed).normal(size=(n, SIDE, SIDE, 3))
    smooth = gaussian_filter(noise, (0, 3, 3, 0))
    return np.clip(128 + 60 * smooth / smooth.std(), 0, 255).astype(np.uint8)


def make_bursts(
    scenes: Array, *, seed: int, shift: int = 1, noise: float = 6.0
) -> tuple[Array, Ints]:
    """Three to six frames of each scene, shifted and noisy, and the number of their scene."""
    rng = np.random.default_rng(seed)
    scene = np.repeat(np.arange(len(scenes)), rng.integers(3, 7, len(scenes)))
    frames = np.empty((len(scene), *scenes.shape[1:]), dtype=np.uint8)
    for row, number in enumerate(scene):
        moved = np.roll(scenes[number], rng.integers(-shift, shift + 1, 2), (0, 1))
        frames[row] = np.clip(moved + rng.normal(0, noise, moved.shape), 0, 255)
    return frames, scene
