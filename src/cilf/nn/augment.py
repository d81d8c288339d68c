"""Augmentation as batched tensor operations, one random choice per image."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from cilf.core import validation

Augmentation = Callable[[Tensor, torch.Generator], Tensor]


def random_shift(x: Tensor, generator: torch.Generator, share: float = 0.125) -> Tensor:
    """Move each image by up to an eighth of its size; its edge pixels fill the gap."""
    n, _, height, width = x.shape
    down, right = max(1, round(share * height)), max(1, round(share * width))
    padded = F.pad(x.float(), (right, right, down, down), mode="replicate")
    top = _draw_offsets(n, 2 * down, generator).to(x.device)
    left = _draw_offsets(n, 2 * right, generator).to(x.device)
    rows = (top + torch.arange(height, device=x.device))[:, :, None]  # (n, h, 1)
    columns = (left + torch.arange(width, device=x.device))[:, None, :]  # (n, 1, w)
    instance = torch.arange(n, device=x.device)[:, None, None]
    moved = padded.permute(0, 2, 3, 1)[instance, rows, columns]  # (n, h, w, c)
    return moved.permute(0, 3, 1, 2)


def _draw_offsets(n: int, most: int, generator: torch.Generator) -> Tensor:
    """Whole numbers from 0 to ``most``: (n, 1)."""
    return torch.randint(most + 1, (n, 1), generator=generator, device=generator.device)


def random_flip(x: Tensor, generator: torch.Generator) -> Tensor:
    """Mirror each image left to right with probability one half."""
    chance = torch.rand(len(x), generator=generator, device=generator.device).to(x.device)
    return torch.where(chance[:, None, None, None] < 0.5, x.flip(3), x)


def random_shift_flip(x: Tensor, generator: torch.Generator) -> Tensor:
    """Shift each image, and mirror it with probability one half."""
    return random_flip(random_shift(x, generator), generator)


AUGMENTATIONS: dict[str, Augmentation] = {
    "shift": random_shift,
    "flip": random_flip,
    "shift-flip": random_shift_flip,
}


def make_augmentation(name: str | None, x: Tensor) -> Augmentation | None:
    """The named augmentation. None if ``name`` is None or ``x`` holds no images."""
    if name is None:
        return None
    chosen = AUGMENTATIONS[validation.one_of("augmentation", name, AUGMENTATIONS)]
    return chosen if x.ndim == 4 else None
