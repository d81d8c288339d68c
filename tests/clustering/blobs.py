"""Made-up Gaussian classes, and the evidence that a counting rule gets about a window of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from cilf.clustering.evidence import Evidence
from cilf.clustering.kmeans import semi_supervised_kmeans
from cilf.clustering.p_values import Labelled

KNOWN = 12 * torch.eye(8)[:3]
NOVEL = 12 * torch.eye(8)[3:7]
N_MEMORY, N_HELD_OUT = 60, 20  # labelled instances of each known class


def around(centres: Tensor, sizes: int | Sequence[int], seed: int) -> Tensor:
    """Instances around each of these centres, with deviation 1 in every direction."""
    wanted = [sizes] * len(centres) if isinstance(sizes, int) else list(sizes)
    places = centres.repeat_interleave(torch.tensor(wanted, dtype=torch.int64), 0)
    noise = np.random.default_rng(seed).normal(size=places.shape)
    return places + torch.tensor(noise, dtype=torch.float32)


def label(centres: Tensor, n: int, seed: int) -> Labelled:
    """Equally many labelled instances of each class."""
    return Labelled(around(centres, n, seed), torch.arange(len(centres)).repeat_interleave(n))


def nothing(n_dimensions: int = 8) -> Labelled:
    return Labelled(torch.zeros(0, n_dimensions), torch.zeros(0, dtype=torch.int64))


def gather(
    window: Tensor,
    counts: Sequence[int] = tuple(range(9)),
    *,
    known: Tensor = KNOWN,
    memory: Labelled | None = None,
    held_out: Labelled | None = None,
    seed: int = 0,
) -> Evidence:
    """Clusterings of a window with each of these numbers of novel centres."""
    generator = torch.Generator().manual_seed(seed)
    memory = label(known, N_MEMORY, seed + 1000) if memory is None else memory
    held_out = label(known, N_HELD_OUT, seed + 2000) if held_out is None else held_out
    return Evidence(
        clusterings={
            k: semi_supervised_kmeans(window, known, k, generator=generator) for k in counts
        },
        points=dict.fromkeys(counts, window),
        memory=dict.fromkeys(counts, memory),
        held_out=dict.fromkeys(counts, held_out),
        curve={},
        generator=generator,
    )
