"""Seeded randomness. Every source is made from a seed and the purpose it serves.

Nothing here keeps a state, so a saved learner needs no generator in its file, and nothing
touches the global generators of numpy, torch or Python.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # data are loaded without torch, which takes seconds to import
    import torch


def _entropy(seed: int, purpose: tuple[str | int, ...]) -> list[int]:
    """The numbers to seed from. Their count is one of them, since numpy ignores trailing zeros."""
    words = [zlib.crc32(p.encode()) if isinstance(p, str) else int(p) for p in purpose]
    return [seed, len(words), *words]


def generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """A numpy generator for one purpose.

    >>> generator(0, "memory", 3).integers(100) == generator(0, "memory", 3).integers(100)
    np.True_
    """
    return np.random.default_rng(_entropy(seed, purpose))


def derive_seed(seed: int, *purpose: str | int) -> int:
    """A 31-bit seed for libraries that take a number (scikit-learn, torch)."""
    return int(np.random.SeedSequence(_entropy(seed, purpose)).generate_state(1)[0] >> 1)


def torch_generator(
    seed: int, *purpose: str | int, device: torch.device | None = None
) -> torch.Generator:
    """A torch generator for one purpose, on the CPU if no other device is named.

    Numbers that are drawn for each batch are drawn on the device that uses them: to move them
    there, the host would wait for the device. A seed gives other numbers on a GPU than on the CPU.
    """
    import torch

    return torch.Generator(device or "cpu").manual_seed(derive_seed(seed, *purpose))


def move_generator(generator: torch.Generator, device: torch.device) -> torch.Generator:
    """A generator for the draws of batches on this device: the same one if it is there already."""
    import torch

    if generator.device.type == device.type:
        return generator
    seed = int(torch.randint(2**31, (1,), generator=generator, device=generator.device))
    return torch.Generator(device).manual_seed(seed)


@contextmanager
def isolated_torch(seed: int, *purpose: str | int) -> Iterator[None]:
    """Seed torch's global generators inside the block and put them back after it.

    Only for code that cannot be handed a generator: module initialisation and dropout.
    """
    import torch

    cuda = list(range(torch.cuda.device_count()))
    with torch.random.fork_rng(devices=cuda):
        torch.random.manual_seed(derive_seed(seed, *purpose))
        yield
