"""The rule "unexplained mass": novel classes are what no mixture of known classes explains."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cilf.clustering.evidence import LEAST_K_MAX, CountRule, Evidence
from cilf.clustering.kmeans import Clusters, refine
from cilf.clustering.p_values import PValues, measure_p_values
from cilf.clustering.separation import SeparationScale, merge_clusters, separations
from cilf.clustering.support import measure_support
from cilf.core import validation
from cilf.core.distances import squared_distances
from cilf.core.types import Floats, Ints

MIN_CLASS_SIZE = 6  # instances of a class beside a larger one
SMALL_SHARE = 0.25  # even shares of the window; a class with less must lie far from all others
SMALL_SEPARATION = 0.5  # of a class with less than ``even_share`` from larger ones
FAR_FACTOR = 3.0  # times the separation of halves of a known class that such a class has
ALWAYS_VOTING = 32  # novel centres up to which every clustering votes
CROWDED = 0.5  # share of its centres that are classes, from which on a finer clustering votes too
MAX_SUPPORT = 12.0  # digits that one clustering contributes to the support of an instance
MAX_COUNTED = 64  # novel classes that the distribution reaches
CERTAINTY_SLOPE = 0.75  # of the logit of a novel class being there, by digits of support
EVEN_SUPPORT = 6.5  # digits at which a novel class is as likely as none
VOTE_SPREAD = 0.9  # mean error of a vote for one class; it grows with the root of the number
VOTE_POWER = 1.5  # of the mean over votes, which agree more where they are right


class ConvergedClasses(NamedTuple):
    """Novel centres, and the mean squared distance of the window to the nearest centre of all."""

    centres: Tensor
    inertia: float


@dataclass(frozen=True)
class Candidates:
    """The novel clusters of one clustering."""

    points: Tensor
    clusters: Clusters
    support: Floats  # digits, of each cluster: the mean over its members
    sizes: Ints
    least: float  # support of a cluster that counts

    @cached_property
    def distances(self) -> Floats:
        """The separation of each cluster from each other. Not every clustering is asked for it."""
        first, n = self.clusters.n_known, len(self.clusters.centres)
        return separations(self.points, self.clusters.assignment, n)[first:, first:]

    def rank(self) -> list[int]:
        """The clusters with any support, best first."""
        order = np.argsort(-self.support, kind="stable").tolist()
        return [i for i in order if self.support[i] > 0]

    def select(self) -> list[int]:
        """The clusters with enough support to count, best first."""
        return [i for i in self.rank() if self.support[i] > self.least]

    def merge(self, chosen: list[int], closest: float, at_least: int = 1) -> list[list[int]]:
        """The classes that these clusters make up, largest first, each a list of clusters."""
        merged = merge_clusters(self.distances, chosen, closest, at_least)
        return sorted(merged, key=self.size, reverse=True)

    def size(self, clusters: list[int]) -> int:
        """The number of instances of a class."""
        return int(self.sizes[clusters].sum())

    def are_apart(self, one: list[int], other: list[int], closest: float) -> bool:
        """Whether two classes are so far apart, on average over their clusters."""
        return bool(self.distances[np.ix_(one, other)].mean() >= closest)

    def locate(self, classes: list[list[int]]) -> Tensor:
        """The centre of each class: (n_classes, d)."""
        return torch.stack([self._members(each).mean(0) for each in classes])

    def converge(self, classes: list[list[int]]) -> ConvergedClasses:
        """The centres that k-means converges to from the centres of these classes."""
        known = self.clusters.centres[: self.clusters.n_known]
        found = refine(self.points, known, self.locate(classes))
        squares = squared_distances(self.points, found.centres).amin(1)
        return ConvergedClasses(found.novel, float(squares.mean()))

    def _members(self, clusters: list[int]) -> Tensor:
        rows = torch.tensor(clusters, device=self.points.device) + self.clusters.n_known
        return self.points[torch.isin(self.clusters.assignment, rows)]


@dataclass(frozen=True, kw_only=True, repr=False)
class UnexplainedMass(CountRule):
    """Count the clusters that no mixture of known classes explains.

    Each novel cluster has a support (:mod:`cilf.clustering.support`). There is nothing novel in a
    window unless a cluster has ``alarm`` digits. If there is, an instance has the mean support of
    its clusters in all clusterings. Clusters whose instances have more than ``support`` digits
    count if they lie on the upper side of the window: the supports of its instances fall into two
    groups, and the middle between them decides.

    Those that lie close together are one class. The known classes say what is close. A class with
    less than ``even_share`` even shares of the window counts only if it lies as far from larger
    ones as halfway between two halves of a known class and two known classes. A class with less
    than a quarter of an even share must also lie three times as far as two halves do.

    Each clustering votes with its number of classes if it has more centres than any clustering
    has classes. The ``quantile`` of the votes decides. The centres are those of the tightest
    clustering that found so many.

    If the number is given, the same clusters are used, and so many classes are kept; ``support``
    alone says which clusters count.

    Parameters
    ----------
    alarm : float, default=7.25
        Support, in digits, that one cluster of six instances or more must exceed for anything to
        be novel.
    support : float, default=3.0
        Mean support of its instances, in digits, that a cluster must exceed at least to count.
    separation : float, default=0.1
        Separation of two classes, from 0 (two halves of a known class) to 1 (two known classes),
        on a logarithmic scale.
    even_share : float, default=0.6
        Size of a class, in even shares of the window, below which it must lie further apart. An
        even share is what a class has if all classes of the window are equally large.
    quantile : float, default=0.5
        Place of the number of classes among the votes, from 0 (least) to 1 (largest).
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        "alarm": validation.in_range(0.0),
        "support": validation.in_range(0.0),
        "separation": validation.in_range(0.0, 1.0),
        "even_share": validation.in_range(0.0),
        "quantile": validation.in_range(0.0, 1.0),
    }

    alarm: float = 7.25
    support: float = 3.0
    separation: float = 0.1
    even_share: float = 0.6
    quantile: float = 0.5

    def find_centres(self, evidence: Evidence) -> Tensor:
        return self.find(evidence, None)[0]

    def find(self, evidence: Evidence, n_novel: int | None) -> tuple[Tensor, Mapping[int, float]]:
        measured = _measure_clusters(evidence)
        none = evidence.clusterings[0].novel
        if not measured or n_novel == 0:
            return none, {0: 1.0}
        best = _strongest(evidence, measured)
        if n_novel is None and best <= self.alarm:
            return none, count_probability([0], best)
        candidates = _pool_support(evidence, measured, self.support, n_novel is None)
        classes = self._classify(evidence, candidates)
        if n_novel is not None:
            return self._keep(evidence, candidates, classes, n_novel), {n_novel: 1.0}
        votes = elect({k: len(found) for k, found in classes.items()})
        n_found = max(1, round(float(np.quantile(votes, self.quantile))))
        centres = self._keep(evidence, candidates, classes, n_found)
        return centres, count_probability(votes, best)

    def _classify(
        self, evidence: Evidence, candidates: Mapping[int, Candidates]
    ) -> dict[int, list[list[int]]]:
        """The classes that each clustering finds, as lists of its clusters."""
        scale = SeparationScale.measure(_known_instances(evidence), evidence.generator)
        found: dict[int, list[list[int]]] = {}
        for k, each in candidates.items():
            if k > ALWAYS_VOTING and len(found[max(found)]) < CROWDED * max(found):
                break
            found[k] = self._find_classes(each, scale)
        return found

    def _find_classes(self, candidates: Candidates, scale: SeparationScale) -> list[list[int]]:
        """The classes of one clustering: large ones, and small ones that lie far from them."""
        found = candidates.merge(candidates.select(), scale.at(self.separation))
        sizes = [candidates.size(each) for each in found]
        n, n_known = len(candidates.points), candidates.clusters.n_known
        n_large = count_large(sizes, n, n_known, self.even_share)
        small = SMALL_SHARE * n / (n_known + n_large)
        apart = scale.at(SMALL_SEPARATION)
        kept, far = found[:n_large], max(apart, FAR_FACTOR * scale.halves)
        for each, size in zip(found[n_large:], sizes[n_large:], strict=True):
            closest = apart if size >= small else far
            is_apart = all(candidates.are_apart(each, other, closest) for other in kept)
            if size >= MIN_CLASS_SIZE and is_apart:
                kept.append(each)
        return kept

    def _keep(
        self,
        evidence: Evidence,
        candidates: Mapping[int, Candidates],
        classes: Mapping[int, list[list[int]]],
        n_novel: int,
    ) -> Tensor:
        """The centres of ``n_novel`` classes, of the tightest clustering that finds so many.

        If none does, the supported clusters of one with twice as many centres are merged to this
        number. If there are too few of them, the best clusters are taken as they are.
        """
        options = [k for k, found in classes.items() if len(found) == n_novel]
        if options:
            converged = [candidates[k].converge(classes[k]) for k in options]
            return min(converged, key=lambda each: each.inertia).centres
        enough = [k for k, c in candidates.items() if len(c.select()) >= n_novel]
        if enough:
            clusters = candidates[min((k for k in enough if k >= 2 * n_novel), default=enough[-1])]
            return clusters.locate(clusters.merge(clusters.select(), inf, n_novel))
        for clusters in candidates.values():
            if len(clusters.rank()) >= n_novel:
                return clusters.locate([[i] for i in clusters.rank()[:n_novel]])
        return evidence.clusterings[n_novel].novel


def _measure_clusters(evidence: Evidence) -> dict[int, list[float]]:
    """The support of each novel cluster, by the number of novel centres."""
    found: dict[int, list[float]] = {}
    known: PValues | None = None
    before: Tensor | None = None
    for k, clusters in evidence.clusterings.items():
        points = evidence.points[k]
        if known is None or points is not before:
            centres = clusters.centres[: clusters.n_known]
            known = measure_p_values(points, centres, evidence.memory[k], evidence.held_out[k])
            before = points
        if k:
            found[k] = measure_support(clusters, known, *evidence.assign_labelled(k))
    return found


def _strongest(evidence: Evidence, measured: Mapping[int, list[float]]) -> float:
    """The largest support of a cluster that has enough instances to be a class; 0 if none has."""
    best = 0.0
    for k, support in measured.items():
        clusters = evidence.clusterings[k]
        sizes = torch.bincount(clusters.assignment, minlength=len(clusters.centres)).tolist()
        large = zip(support, sizes[clusters.n_known :], strict=True)
        best = max([best, *(digits for digits, size in large if size >= MIN_CLASS_SIZE)])
    return best


def _pool_support(
    evidence: Evidence, measured: Mapping[int, list[float]], least: float, is_number_open: bool
) -> dict[int, Candidates]:
    """The novel clusters of each clustering, with the support of their instances on average.

    An instance has the mean support of its clusters in all clusterings. So a part of a class is
    known by the class that it belongs to, and a cluster that stands out by chance counts little.
    A cluster counts with ``least`` digits. If the number of classes is not given, it must also lie
    above the middle between the instances with little support and those with much, if some have
    little.
    """
    totals = torch.stack([
        torch.tensor([0.0] * evidence.clusterings[k].n_known + support).clamp_max(MAX_SUPPORT)[
            evidence.clusterings[k].assignment.cpu()
        ]
        for k, support in measured.items()
    ]).mean(0)  # fmt: skip
    little, much = split_in_two(totals.double().numpy())
    if is_number_open and little <= least:  # else nearly all instances are novel
        least = max(least, (little + much) / 2)
    found = {}
    for k in measured:
        clusters, n = evidence.clusterings[k], len(evidence.clusterings[k].centres)
        rows = clusters.assignment.cpu()
        sizes = torch.bincount(rows, minlength=n)
        support = torch.bincount(rows, totals, minlength=n) / sizes.clamp_min(1)
        first = clusters.n_known
        found[k] = Candidates(
            evidence.points[k], clusters, support[first:].float().numpy(), sizes[first:].numpy(),
            least,
        )  # fmt: skip
    return found


def split_in_two(values: Floats) -> tuple[float, float]:
    """The means of the two groups that numbers fall into most clearly, the lower one first.

    They are the groups with the least variance within them, as Otsu's threshold has them.

    >>> split_in_two(np.array([0.0, 0.0, 1.0, 1.0, 1.0, 9.0, 10.0, 11.0]))
    (0.6, 10.0)
    """
    ordered = np.sort(values)
    n_low = np.arange(1, len(ordered))
    sums = np.cumsum(ordered)
    low, high = sums[:-1] / n_low, (sums[-1] - sums[:-1]) / (len(ordered) - n_low)
    if not len(low):
        return float(sums[-1]), float(sums[-1])
    split = int((n_low * n_low[::-1] * (low - high) ** 2).argmax())
    return float(low[split]), float(high[split])


def _known_instances(evidence: Evidence) -> list[Tensor]:
    """Fresh instances of each known class: the window's own, and held-out ones.

    Instances that the network was trained on would lie closer together. The known clusters of a
    clustering with eight novel centres hold few novel instances.
    """
    finest = max(k for k in evidence.clusterings if k <= LEAST_K_MAX)
    clusters, held_out = evidence.clusterings[finest], evidence.held_out[finest]
    points = evidence.points[finest]
    return [
        torch.cat([points[clusters.assignment == label], held_out.points[held_out.is_of(label)]])
        for label in range(clusters.n_known)
    ]


def count_large(sizes: list[int], n: int, n_known: int, even_share: float) -> int:
    """The number of classes, of descending sizes, that have such a share of an even share of ``n``.

    There is an even share for each known class and each of these. At least one class counts.

    >>> count_large([50, 40, 9], n=300, n_known=4, even_share=0.6)
    2
    """
    large = [
        i for i, size in enumerate(sizes, 1)
        if size >= max(MIN_CLASS_SIZE, even_share * n / (n_known + i))
    ]  # fmt: skip
    return max(large, default=min(1, len(sizes)))


def elect(counts: Mapping[int, int]) -> list[int]:
    """The votes of clusterings, from the number of classes that each of them finds.

    Those vote that had a centre to spare, and no fewer centres than the largest number found:
    the others might have counted more.

    >>> elect({1: 1, 2: 2, 3: 2, 4: 3, 5: 2})
    [2, 3, 2]
    """
    most = max(counts.values())
    votes = [count for k, count in counts.items() if count < k and k >= max(2, most)]
    return votes or [most]


def count_probability(votes: list[int], support: float) -> dict[int, float]:
    """The probability of each number of novel classes.

    The largest support of a cluster says how likely it is that there is any. Each vote is wrong
    by some classes, the more the larger it is. Numbers less likely than one in a thousand are left
    out.

    >>> found = count_probability([2, 2, 3], support=12.0)
    >>> max(found, key=found.get), round(sum(found.values()), 6)
    (2, 1.0)
    """
    novel = 1 / (1 + math.exp(-CERTAINTY_SLOPE * (support - EVEN_SUPPORT)))
    counts = np.arange(1, MAX_COUNTED + 1)
    centres = np.maximum(votes, 1).astype(float)
    errors = np.abs(counts[:, None] - centres) / (VOTE_SPREAD * np.sqrt(centres))
    likely = np.exp(-errors).mean(1) ** VOTE_POWER
    likely = np.concatenate([[1 - novel], novel * likely / likely.sum()])
    kept = {k: float(p) for k, p in enumerate(likely) if p >= 1e-3}
    return {k: p / sum(kept.values()) for k, p in kept.items()}
