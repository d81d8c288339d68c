"""The p-value of an instance alone: how many known instances lie as far from their class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from cilf.core.distances import squared_distances

N_NEIGHBOURS = 10  # labelled instances of a class whose mean stands for the class near an instance
FULL_SCALE_SIZE = 20  # held-out instances of a class that alone decide on its width
BLOCK = 2048  # instances whose distances are held at once


class Labelled(NamedTuple):
    """Labelled instances of known classes in the space of a window."""

    points: Tensor  # (m, d)
    labels: Tensor  # (m,)

    def is_of(self, label: int) -> Tensor:
        """Whether each instance belongs to this class."""
        return self.labels == label

    def by_class(self, n_classes: int) -> tuple[Tensor, ...]:
        """The instances of each class, (m, d)."""
        return tuple(self.points[self.is_of(label)] for label in range(n_classes))


class PValues(NamedTuple):
    """The p-value of each instance, and the known class that it is nearest to."""

    p: Tensor  # (n,)
    nearest: Tensor  # (n,)


def rank_alone(points: Tensor, memory: Labelled, held_out: Labelled) -> Tensor:
    """The p-value of each instance, from labelled instances whose classes may have any numbers.

    >>> memory = Labelled(torch.arange(10.0)[:, None], torch.full((10,), 7))
    >>> nothing = Labelled(torch.zeros(0, 1), torch.zeros(0, dtype=torch.int64))
    >>> rank_alone(torch.tensor([[4.5], [99.0]]), memory, nothing)
    tensor([1.0000, 0.0909])
    """
    return Ranking.of_classes(memory, held_out).rank(points).p


def _locate(memory: Labelled, held_out: Labelled) -> tuple[Tensor, Labelled, Labelled]:
    """The centre of each class, and the labelled instances with positions of classes as labels."""
    classes = torch.unique(torch.cat([memory.labels, held_out.labels]))
    memory, held_out = (
        Labelled(kept.points, torch.searchsorted(classes, kept.labels))
        for kept in (memory, held_out)
    )
    centres = []
    for label in range(len(classes)):
        located = memory if bool(memory.is_of(label).any()) else held_out
        centres.append(located.points[located.is_of(label)].mean(0))
    return torch.stack(centres), memory, held_out


def measure_p_values(
    points: Tensor, centres: Tensor, memory: Labelled, held_out: Labelled
) -> PValues:
    """Rank instances among held-out instances of the known classes by their distance.

    The distance of an instance to a class is that to the mean of the nearest instances of the
    class in the memory. It is divided by the median of the held-out instances of the class, so that
    a wide class is judged by its own width. The least over the classes is compared with the same of
    all held-out instances: a known instance falls below ``p`` with probability ``p``, about. If
    nothing is held out, the memory takes its place, each instance of it without itself. If there
    is no memory either, every p-value is 1.
    """
    return Ranking.fit(centres, memory, held_out).rank(points)


@dataclass(frozen=True)
class Ranking:
    """All that p-values need of the known instances, computed once; see `measure_p_values`."""

    centres: Tensor  # (c, d)
    members: tuple[Tensor, ...]  # of each class in the memory, (m, d)
    scales: Tensor  # (c,) what the distances to each class are divided by
    known: Tensor  # (h,) the least scaled distance of each known instance

    @classmethod
    def fit(cls, centres: Tensor, memory: Labelled, held_out: Labelled) -> Ranking:
        """The ranking by classes with these centres."""
        members = memory.by_class(len(centres))
        if len(held_out.labels):
            known, labels = distances_to_classes(held_out.points, centres, members), held_out.labels
        else:
            known, labels = _distances_within(centres, members, memory), memory.labels
        if len(labels) == 0:
            return cls(centres, members, centres.new_ones(len(centres)), centres.new_zeros(0))
        scales = _scales(known, labels)
        return cls(centres, members, scales, (known / scales).amin(1))

    @classmethod
    def of_classes(cls, memory: Labelled, held_out: Labelled) -> Ranking:
        """The ranking by classes that may have any numbers, with the means as their centres."""
        return cls.fit(*_locate(memory, held_out))

    def rank(self, points: Tensor) -> PValues:
        """The p-value of each point, and the known class that it is nearest to."""
        distances = distances_to_classes(points, self.centres, self.members)
        relative, nearest = (distances / self.scales).min(1)
        return PValues(rank(self.known, relative), nearest)


def rank(known: Tensor, scores: Tensor) -> Tensor:
    """The share of known scores that are as large, where each score counts as one of them.

    >>> rank(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.5, 2.0, 9.0]))
    tensor([1.0000, 0.7500, 0.2500])
    """
    ordered = known.sort().values
    n_smaller = torch.searchsorted(ordered, scores.contiguous())
    shares: Tensor = (1 + len(known) - n_smaller).to(scores) / (len(known) + 1)
    return shares


def distances_to_classes(points: Tensor, centres: Tensor, members: Sequence[Tensor]) -> Tensor:
    """Distance of each instance to the nearest members of each class, on average: (n, c).

    A class without members has its centre.
    """
    blocks = [_to_classes(block, centres, members) for block in torch.split(points, BLOCK)]
    return torch.cat(blocks) if blocks else points.new_zeros(0, len(centres))


def _to_classes(points: Tensor, centres: Tensor, members: Sequence[Tensor]) -> Tensor:
    pairs = zip(centres, members, strict=True)
    return torch.stack([_to_class(points, centre, own) for centre, own in pairs], 1)


def _to_class(points: Tensor, centre: Tensor, members: Tensor, n_skipped: int = 0) -> Tensor:
    """Distance to the mean of the nearest members, without the first ``n_skipped`` of them.

    The squared distance to a mean is the mean squared distance to its members less their variance,
    which half of their mean squared distance from each other is.
    """
    if len(members) <= n_skipped:
        from_centre: Tensor = torch.linalg.vector_norm(points - centre, dim=1)
        return from_centre
    n_nearest = min(N_NEIGHBOURS + n_skipped, len(members))
    points, members = points - centre, members - centre  # squares of large numbers are inexact
    squares, rows = squared_distances(points, members).topk(n_nearest, largest=False)
    squares, rows = squares[:, n_skipped:], rows[:, n_skipped:]
    between = squared_distances(members, members)
    variance = between[rows[:, :, None], rows[:, None, :]].mean((1, 2)) / 2
    distances: Tensor = (squares.mean(1) - variance).clamp_min(0).sqrt()
    return distances


def _distances_within(centres: Tensor, members: Sequence[Tensor], memory: Labelled) -> Tensor:
    """Distances of the memory to each class; an instance is no neighbour of itself."""
    distances = distances_to_classes(memory.points, centres, members)
    for label, (centre, own) in enumerate(zip(centres, members, strict=True)):
        if len(own):
            of_class = memory.is_of(label)
            distances[of_class, label] = _to_class(own, centre, own, n_skipped=1)
    return distances


def _scales(distances: Tensor, labels: Tensor) -> Tensor:
    """Median distance of the instances of each class to their class.

    The median of all classes counts for the instances that a class lacks of ``FULL_SCALE_SIZE``.
    """
    own = distances.gather(1, labels[:, None])[:, 0]
    overall = own.median()
    scales = overall.repeat(distances.shape[1])
    for label in range(len(scales)):
        members = own[labels == label]
        if len(members):
            trust = min(1.0, len(members) / FULL_SCALE_SIZE)
            scales[label] = trust * members.median() + (1 - trust) * overall
    smallest = torch.finfo(scales.dtype).tiny
    return torch.where(scales > smallest, scales, scales.max().clamp_min(1e-12))
