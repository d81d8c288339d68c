"""The place of each instance of a large window in what was found in a sample of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from cilf.clustering.kmeans import Clusters
from cilf.core.distances import squared_distances
from cilf.learners.cilf.decision import nearest_novel
from cilf.learners.cilf.window_head import Blend, Regression, confirm_novel


class Placed(NamedTuple):
    """The novelty of each instance, its nearest known class, and its novel cluster."""

    novelty: Tensor  # (n,)
    label: Tensor  # (n,)
    cluster: Tensor  # (n,) -1 for known instances

    def replace_twins(self, sample: Placed, twins: Tensor) -> Placed:
        """The places with those of a sample for all instances that are equal to one of it.

        ``twins`` are their places in the sample, or -1.

        >>> one = Placed(torch.zeros(3), torch.zeros(3), torch.zeros(3))
        >>> other = Placed(torch.ones(1), torch.ones(1), torch.ones(1))
        >>> one.replace_twins(other, torch.tensor([-1, 0, 0])).novelty
        tensor([0., 1., 1.])
        """
        rows = twins.clamp_min(0)
        pairs = zip(self, sample, strict=True)
        return Placed(*(torch.where(twins >= 0, own[rows], all_) for all_, own in pairs))


class LearnedHead(NamedTuple):
    """What the head of a sample says of other instances."""

    regression: Regression
    novelty_blend: Blend | None
    score_blend: Blend | None
    confirms: bool  # whether its classes and clusters count, beside the excess


@dataclass(frozen=True)
class Placement:
    """Assigns instances one by one, by centres, a threshold and a head.

    An instance gets what the search would say of it if it learned from the others alone.
    """

    tried: Sequence[Tensor]  # novel centres of each clustering that has any
    clusters: Clusters
    threshold: float
    head: LearnedHead | None

    def place(self, points: Tensor) -> Placed:
        """The place of each point, which does not depend on the others."""
        n_known = self.clusters.n_known
        squares = squared_distances(points, self.clusters.centres)
        nearest_known = squares[:, :n_known].amin(1).sqrt()
        novelty = self._average_margin(points, nearest_known)
        margins = nearest_known
        if squares.shape[1] > n_known:
            margins = nearest_known - squares[:, n_known:].amin(1).sqrt()
        label, cluster = squares[:, :n_known].argmin(1), nearest_novel(squares, n_known)
        if self.head is None:
            is_novel = margins > self.threshold
        else:
            answers = self.head.regression.predict(points)
            excess, answers = answers[:, 0], answers[:, 1:]
            novelty = _blend(self.head.novelty_blend, novelty, excess)
            scores = _blend(self.head.score_blend, margins, excess)
            is_novel = scores > self.threshold
            if self.head.confirms:
                is_novel &= confirm_novel(answers, n_known, margins, scores)
                cluster = answers[:, n_known:].argmax(1)
        if squares.shape[1] == n_known:
            is_novel = torch.zeros_like(is_novel)
        return Placed(novelty, label, torch.where(is_novel, cluster, -1))

    def _average_margin(self, points: Tensor, nearest_known: Tensor) -> Tensor:
        """The mean over the clusterings of how much nearer a novel centre is than a known one."""
        squares = squared_distances(points, torch.cat(list(self.tried)))
        groups = torch.split(squares, [len(centres) for centres in self.tried], dim=1)
        nearest = torch.stack([group.amin(1).sqrt() for group in groups])
        return nearest_known - nearest.mean(0)


def _blend(blend: Blend | None, margins: Tensor, excess: Tensor) -> Tensor:
    return margins if blend is None else blend.add(margins, excess)
