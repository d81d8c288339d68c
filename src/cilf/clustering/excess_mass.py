"""The rule "excess mass": a novel class is where more instances lie than known data explain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cilf.clustering.evidence import CountRule, Evidence
from cilf.clustering.kmeans import Clusters, semi_supervised_kmeans
from cilf.core import validation
from cilf.core.types import Floats

MIN_HALVED_SIZE = 6  # instances of a class that can be split into halves
MIN_KNOWN_SHARE = 0.1  # of a known class, that is assumed to lie in known clusters
MAX_PAIRED_CLASSES = 20  # whose distances tell how far apart two classes lie
CERTAIN_RATIO = 1.5  # times the threshold: a single novel cluster that large is a class
PRIOR_SIZE = 20  # instances that the average class counts for in the estimate of one class


@dataclass(frozen=True, kw_only=True, repr=False)
class ExcessMass(CountRule):
    """Count the clusters that hold more instances than known data explain.

    A novel cluster is real if its size exceeds a threshold: ``expected_weight`` times the number
    of known instances that are expected in it, ``z_value`` times the standard deviation of that
    number, and ``min_share`` of an even share of the window. Real clusters that lie close
    together are one class.

    Each clustering votes with its number of classes. The median vote decides, among the votes of
    clusterings that had a centre to spare: others would have counted more if they could. Many
    centres can split a class into clusters of which none is real, so that no class is elected.
    There is one all the same if a single novel centre gathers enough (``CERTAIN_RATIO``). The
    centres are those of the simplest clustering that voted so. Clusters that are not real are left
    out, since they often hold single outliers.

    Parameters
    ----------
    expected_weight : float, default=0.6
        Weight of the expected number of known instances in the threshold.
    z_value : float, default=1.5
        Number of standard deviations in the threshold.
    min_share : float, default=0.4
        Share of an even share of the window in the threshold.
    separation : float, default=0.3
        Separation of two classes, from 0 (two halves of a known class) to 1 (two known classes),
        on a logarithmic scale.
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        "expected_weight": validation.in_range(0.0),
        "z_value": validation.in_range(0.0),
        "min_share": validation.in_range(0.0),
        "separation": validation.in_range(0.0, 1.0),
    }

    expected_weight: float = 0.6
    z_value: float = 1.5
    min_share: float = 0.4
    separation: float = 0.3

    def find_centres(self, evidence: Evidence) -> Tensor:
        closest = separation_threshold(
            _known_instances(evidence), self.separation, evidence.generator
        )
        classes: dict[int, list[Tensor]] = {}
        fewest = 0
        for k, clusters in evidence.clusterings.items():
            known = expect_known(
                clusters, evidence.held_out[k], evidence.held_out_labels,
                evidence.held_out_is_marked,
            )  # fmt: skip
            test = SizeTest(clusters, known, self, evidence.is_marked)
            classes[k] = find_classes(_novel_members(clusters, evidence.points[k]), test, closest)
            fewest = max(fewest, int(test.is_certain()))
        n_novel = max(fewest, elect_count({k: len(found) for k, found in classes.items()}))
        agreeing = [found for found in classes.values() if len(found) == n_novel]
        if n_novel == 0 or not agreeing:
            return evidence.clusterings[n_novel].novel
        return torch.stack([members.mean(0) for members in agreeing[0]])


def _known_instances(evidence: Evidence) -> list[Tensor]:
    """Fresh instances of each known class: the window's own, or held-out ones if it has few.

    Instances that the network was trained on would lie closer together. The known clusters of the
    finest clustering hold the fewest novel instances.
    """
    finest = max(evidence.clusterings)
    clusters, held_out = evidence.clusterings[finest], evidence.held_out[finest]
    in_window = _members(clusters, evidence.points[finest])[: clusters.n_known]
    return [
        window if len(window) >= MIN_HALVED_SIZE else held_out[evidence.held_out_labels == label]
        for label, window in enumerate(in_window)
    ]


def _members(clusters: Clusters, points: Tensor) -> list[Tensor]:
    """The instances of each cluster, known classes first."""
    return [points[clusters.assignment == c] for c in range(len(clusters.centres))]


def _novel_members(clusters: Clusters, points: Tensor) -> list[Tensor]:
    return _members(clusters, points)[clusters.n_known :]


class Expectation(NamedTuple):
    """Number of known instances in each cluster."""

    mean: Tensor
    deviation: Tensor


class SizeTest(NamedTuple):
    """Whether novel clusters hold more instances than known data explain."""

    clusters: Clusters
    known: Expectation
    rule: ExcessMass
    is_marked: Tensor | None = None  # the instances that may be novel; None: all

    def is_class(self, cluster: int) -> bool:
        """Whether this novel cluster is a class by itself."""
        return self._ratio([cluster], len(self.clusters.centres)) > 1

    def are_one_class(self, clusters: list[int]) -> bool:
        """Whether these novel clusters are one class together."""
        return self._ratio(clusters, self.clusters.n_known + 1) > 1

    def is_certain(self) -> bool:
        """Whether the only novel cluster is so large that no vote is needed."""
        alone = len(self.clusters.novel) == 1
        return alone and self._ratio([0], len(self.clusters.centres)) > CERTAIN_RATIO

    def _ratio(self, novel: list[int], n_shares: int) -> float:
        """The size of these clusters over the threshold."""
        rows = torch.tensor(novel, device=self.known.mean.device) + self.clusters.n_known
        size = int(torch.isin(self.clusters.assignment, rows).sum())
        threshold = self.rule.expected_weight * float(self.known.mean[rows].sum())
        deviation = float(self.known.deviation[rows].square().sum().sqrt())
        threshold += self.rule.z_value * deviation
        threshold += self.rule.min_share * self._n_marked() / n_shares
        return size / max(threshold, 1)

    def _n_marked(self) -> int:
        if self.is_marked is None:
            return len(self.clusters.assignment)
        return int(self.is_marked.sum())


def find_classes(members: list[Tensor], test: SizeTest, closest: float) -> list[Tensor]:
    """Instances of each novel class, from the instances of each novel cluster of one clustering.

    A cluster that is real by itself is a class, and so are several that are real together: many
    centres split a large class into clusters that are each too small. Those closer than
    ``closest`` are one class.
    """
    real = {i for i in range(len(members)) if test.is_class(i)}
    distances = separations(members)
    large = [i for i, rows in enumerate(members) if len(rows) > 1]
    for merged in merge_clusters(distances, large, closest):
        if not real.intersection(merged) and test.are_one_class(merged):
            real.update(merged)
    classes = merge_clusters(distances, sorted(real), closest)
    return [torch.cat([members[i] for i in merged]) for merged in classes]


def expect_known(
    clusters: Clusters, held_out: Tensor, held_out_y: Tensor, is_marked: Tensor | None = None
) -> Expectation:
    """Number of known instances of the window in each cluster, and its standard deviation.

    A cluster gets the same share of a known class as of its held-out instances. These are few, so
    that the average class counts too, like :data:`PRIOR_SIZE` instances, and one more on either
    side. The cluster of the class tells how large the class is in the window. The deviation is
    that of a share drawn from the held-out instances, then of the window's. Held-out instances that
    are not marked lie in known clusters.
    """
    n_clusters, n_known = len(clusters.centres), clusters.n_known
    sizes = torch.bincount(clusters.assignment, minlength=n_clusters).float()
    if len(held_out) == 0:
        return Expectation(torch.zeros_like(sizes), torch.zeros_like(sizes))
    nearest = clusters.assign(held_out, is_marked)
    strays = torch.zeros(n_known, n_clusters, device=sizes.device)
    strays.index_put_((held_out_y, nearest), torch.ones_like(nearest).float(), accumulate=True)
    n_held = strays.sum(1, keepdim=True)  # (n_known, 1)
    average = (strays / n_held.clamp_min(1)).sum(0) / (n_held > 0).sum()
    average = (average * len(held_out) + 1) / (len(held_out) + 2)
    trust = n_held + PRIOR_SIZE
    share = (strays + PRIOR_SIZE * average) / trust
    stay = (1 - share[:, n_known:].sum(1, keepdim=True)).clamp_min(MIN_KNOWN_SHARE)
    n_each = sizes[:n_known, None] / stay
    n_each = n_each * min(1.0, float(sizes.sum() / n_each.sum().clamp_min(1)))
    variance = n_each.square() * share * (1 - share) / (trust + 1) + n_each * share
    return Expectation((n_each * share).sum(0), variance.sum(0).sqrt())


def elect_count(votes: Mapping[int, int]) -> int:
    """The number of classes, from the counts of clusterings with 0, 1, 2, ... novel centres.

    >>> elect_count({0: 0, 1: 1, 2: 2, 3: 2, 4: 3, 5: 2})
    2
    """
    spare = [count for k, count in votes.items() if count < k]
    return round(float(np.median(spare))) if spare else max(votes.values(), default=0)


def separation_threshold(known: list[Tensor], place: float, generator: torch.Generator) -> float:
    """The separation from which two clusters are two classes, judged by the known classes.

    It lies at ``place``, on a logarithmic scale, between two halves of one known class (0) and
    two known classes (1). It is 0 if no class has enough instances to be split.
    """
    known = [members for members in known if len(members) >= MIN_HALVED_SIZE]
    if not known:
        return 0.0
    halves = float(np.median([separate_halves(members, generator) for members in known]))
    pairs = [separation(a, b) for i, a in enumerate(known[:MAX_PAIRED_CLASSES]) for b in known[:i]]
    whole = max(halves, float(np.median(pairs))) if pairs else halves
    return float(halves ** (1 - place) * whole**place)


def separate_halves(members: Tensor, generator: torch.Generator) -> float:
    """Separation of the two halves that 2-means splits one class into."""
    halves = semi_supervised_kmeans(members, members[:0], 2, generator=generator)
    first = halves.assignment == 0
    return separation(members[first], members[~first])


def separation(a: Tensor, b: Tensor) -> float:
    """Distance of two clusters over their pooled deviation, on the line between them.

    Each instance is projected on the line between the means of the others: in many dimensions a
    line through few instances separates anything.
    """
    if len(a) < 3 or len(b) < 3:
        return 0.0
    along_a, along_b = _positions(a, b), _positions(b, a)
    gap = along_a.mean() + along_b.mean() - torch.linalg.vector_norm(a.mean(0) - b.mean(0))
    scatter = along_a.var() * (len(a) - 1) + along_b.var() * (len(b) - 1)
    deviation = (scatter / (len(a) + len(b) - 2)).sqrt()
    return max(0.0, float(gap / deviation.clamp_min(1e-12)))


def _positions(members: Tensor, other: Tensor) -> Tensor:
    """Distance of each instance from the other cluster's mean, towards the rest of its own."""
    rest = (len(members) * members.mean(0) - members) / (len(members) - 1)
    axis = rest - other.mean(0)
    along: Tensor = ((members - other.mean(0)) * axis).sum(1)
    length: Tensor = torch.linalg.vector_norm(axis, dim=1)
    return along / length.clamp_min(1e-12)


def separations(clusters: list[Tensor]) -> Floats:
    """Separation of each cluster from each other: (n, n)."""
    found = np.zeros((len(clusters), len(clusters)), dtype=np.float32)
    for i, members in enumerate(clusters):
        for j in range(i):
            found[i, j] = found[j, i] = separation(members, clusters[j])
    return found


def merge_clusters(distances: Floats, chosen: list[int], closest: float) -> list[list[int]]:
    """Merge the nearest pair of the chosen clusters until all are ``closest`` apart.

    A merged cluster is as far from another as its clusters are on average: measured as one
    cluster it would be wide, and so near to everything.
    """
    merged = [[i] for i in chosen]
    while len(merged) > 1:
        pairs = [(i, j) for i in range(len(merged)) for j in range(i)]
        means = [float(distances[np.ix_(merged[i], merged[j])].mean()) for i, j in pairs]
        nearest = int(np.argmin(means))
        if means[nearest] >= closest:
            break
        i, j = pairs[nearest]
        merged[j] += merged.pop(i)
    return merged
