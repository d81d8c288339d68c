"""How many novel classes a window holds.

``excess_mass`` asks which free clusters hold more instances than known data explain, and joins
those that look like halves of one class. ``largest`` and ``sharpest_bend`` read a validity curve.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from cilf.clustering.kmeans import Clusters, semi_supervised_kmeans
from cilf.core.distances import squared_distances
from cilf.core.types import Floats

ENOUGH = 6  # instances of a class that can be halved
FEWEST_STAY = 0.1  # share of known instances that is thought to lie in known clusters, at the least
MANY = 20  # classes that tell how far apart two classes lie
SURE = 1.5  # times what it has to hold: one free cluster that does is a class, whatever others say
ALIKE = 20  # instances: how much is known about one class from the average one


def excess_mass(
    clusterings: Mapping[int, Clusters],
    z: Tensor,
    calibration: Tensor,
    calibration_y: Tensor,
    *,
    surplus: float,
    doubt: float,
    least_share: float,
    leniency: float,
    generator: torch.Generator,
) -> Tensor:
    """Centres of the novel classes, from clusterings of the window with 0, 1, 2, ... free centres.

    Each clustering votes: it counts its real clusters, two of which are one class if they lie
    closer, in their own deviations, than :func:`apart` says. The median vote decides, among those
    of clusterings that had a centre to spare: others would have counted more if they could. Many
    centres can cut a class into parts of which none is real, so that none is elected; there is one
    all the same if a single free centre gathers more than enough (:data:`SURE`). The centres are
    those of the simplest clustering that voted so, without the clusters that are not real: often
    they hold single strange instances.
    """
    finest = clusterings[max(clusterings)]  # its known clusters hold the fewest novel instances
    closest = apart(_known_groups(finest, z, calibration, calibration_y), leniency, generator)
    found: dict[int, list[Tensor]] = {}
    fewest = 0
    for k, clusters in clusterings.items():
        expected = explained(clusters, calibration, calibration_y)
        enough = Enough(clusters, *expected, surplus, doubt, least_share)
        parts = [
            z[clusters.assignment == c] for c in range(clusters.n_known, len(clusters.centres))
        ]
        found[k] = real_classes(parts, enough, closest)
        fewest = max(fewest, int(enough.beyond_doubt()))
    n_novel = max(fewest, elected({k: len(groups) for k, groups in found.items()}))
    agreeing = [groups for groups in found.values() if len(groups) == n_novel]
    if not agreeing:
        return clusterings[n_novel].free
    return torch.stack([group.mean(0) for group in agreeing[0]]) if n_novel else z[:0]


def _known_groups(
    clusters: Clusters, z: Tensor, calibration: Tensor, calibration_y: Tensor
) -> list[Tensor]:
    """Fresh instances of each known class: the window's own, or held-out ones if it has few.

    Data the network was trained on would not do: they lie closer together.
    """
    in_window = [z[clusters.assignment == label] for label in range(clusters.n_known)]
    held_out = [calibration[calibration_y == label] for label in range(clusters.n_known)]
    return [a if len(a) >= ENOUGH else b for a, b in zip(in_window, held_out, strict=True)]


class Enough(NamedTuple):
    """Whether free clusters hold more instances than known data explain."""

    clusters: Clusters
    expected: Tensor  # known instances in each cluster, see :func:`explained`
    deviation: Tensor
    surplus: float
    doubt: float
    least_share: float

    def each(self, free: int) -> bool:
        """Whether this free cluster does, ``least_share`` of an even share on top."""
        return self._times([free], len(self.clusters.centres)) > 1

    def together(self, free: list[int]) -> bool:
        """Whether these do as the parts of the one novel class that there is."""
        return self._times(free, self.clusters.n_known + 1) > 1

    def beyond_doubt(self) -> bool:
        """Whether the only free cluster holds so much more that no vote is needed."""
        return len(self.clusters.free) == 1 and self._times([0], len(self.clusters.centres)) > SURE

    def _times(self, free: list[int], n_shares: int) -> float:
        """What these hold, as a multiple of what they have to."""
        rows = torch.tensor(free, device=self.expected.device) + self.clusters.n_known
        n_there = int(torch.isin(self.clusters.assignment, rows).sum())
        bar = self.surplus * float(self.expected[rows].sum())
        bar += self.doubt * float(self.deviation[rows].square().sum().sqrt())
        bar += self.least_share * len(self.clusters.assignment) / n_shares
        return n_there / max(bar, 1)


def real_classes(parts: list[Tensor], enough: Enough, closest: float) -> list[Tensor]:
    """The novel classes of one clustering, from the instances of each of its free clusters.

    A cluster that is real by itself counts, and so do several that are one class together: many
    centres cut a large class into parts that are each too small. Those closer than ``closest``
    are one class.
    """
    real = {i for i in range(len(parts)) if enough.each(i)}
    apart_by = separations(parts)
    for members in grouped(apart_by, [i for i, part in enumerate(parts) if len(part) > 1], closest):
        if not real.intersection(members) and enough.together(members):
            real.update(members)
    groups = grouped(apart_by, sorted(real), closest)
    return [torch.cat([parts[i] for i in members]) for members in groups]


def explained(
    clusters: Clusters, calibration: Tensor, calibration_y: Tensor
) -> tuple[Tensor, Tensor]:
    """How many known instances of the window each cluster gets, and how sure that is.

    Of each known class, a cluster gets the share that its held-out instances put there. These are
    few, so that the average class counts for it too, like :data:`ALIKE` instances, and one more on
    either side. How large the class is in the window its own cluster tells. The deviation is
    that of a share drawn from the held-out instances, then of the window's.
    """
    n_clusters, n_known = len(clusters.centres), clusters.n_known
    sizes = torch.bincount(clusters.assignment, minlength=n_clusters).float()
    if len(calibration) == 0:
        return torch.zeros_like(sizes), torch.zeros_like(sizes)
    nearest = squared_distances(calibration, clusters.centres).argmin(1)
    strays = torch.zeros(n_known, n_clusters, device=sizes.device)
    strays.index_put_((calibration_y, nearest), torch.ones_like(nearest).float(), accumulate=True)
    n_held = strays.sum(1, keepdim=True)  # (n_known, 1)
    average = (strays / n_held.clamp_min(1)).sum(0) / (n_held > 0).sum()
    average = (average * len(calibration) + 1) / (len(calibration) + 2)
    trust = n_held + ALIKE
    share = (strays + ALIKE * average) / trust
    stay = (1 - share[:, n_known:].sum(1, keepdim=True)).clamp_min(FEWEST_STAY)
    n_each = sizes[:n_known, None] / stay
    n_each = n_each * min(1.0, float(sizes.sum() / n_each.sum().clamp_min(1)))
    variance = n_each.square() * share * (1 - share) / (trust + 1) + n_each * share
    return (n_each * share).sum(0), variance.sum(0).sqrt()


def elected(votes: Mapping[int, int]) -> int:
    """The number of classes, from the counts of clusterings with 0, 1, 2, ... free centres.

    >>> elected({0: 0, 1: 1, 2: 2, 3: 2, 4: 3, 5: 2})
    2
    """
    spare = [count for k, count in votes.items() if count < k]
    return round(float(np.median(spare))) if spare else max(votes.values(), default=0)


def apart(known: list[Tensor], leniency: float, generator: torch.Generator) -> float:
    """How far apart two groups have to lie to be two classes, judged by the known classes.

    It lies ``leniency`` of the way, on a logarithmic scale, from two halves of one known class
    to two known classes; 0 if no class has enough instances to be halved.
    """
    known = [members for members in known if len(members) >= ENOUGH]
    if not known:
        return 0.0
    halves = float(np.median([halves_separation(members, generator) for members in known]))
    pairs = [separation(a, b) for i, a in enumerate(known[:MANY]) for b in known[:i]]
    whole = max(halves, float(np.median(pairs))) if pairs else halves
    return float(halves ** (1 - leniency) * whole**leniency)


def halves_separation(members: Tensor, generator: torch.Generator) -> float:
    """Separation of the two halves that 2-means cuts one class into."""
    halves = semi_supervised_kmeans(members, members[:0], 2, generator=generator)
    first = halves.assignment == 0
    return separation(members[first], members[~first])


def separation(a: Tensor, b: Tensor) -> float:
    """Distance of two groups over their pooled deviation, on the line between them.

    Each instance is projected on the line that the others alone would draw: in many dimensions
    a line drawn through few instances separates anything.
    """
    if len(a) < 3 or len(b) < 3:
        return 0.0
    along_a, along_b = _positions(a, b), _positions(b, a)
    gap = along_a.mean() + along_b.mean() - torch.linalg.vector_norm(a.mean(0) - b.mean(0))
    scatter = along_a.var() * (len(a) - 1) + along_b.var() * (len(b) - 1)
    deviation = (scatter / (len(a) + len(b) - 2)).sqrt()
    return max(0.0, float(gap / deviation.clamp_min(1e-12)))


def _positions(group: Tensor, other: Tensor) -> Tensor:
    """How far each instance lies from the other group's mean, towards the rest of its own."""
    rest = (len(group) * group.mean(0) - group) / (len(group) - 1)
    axis = rest - other.mean(0)
    along: Tensor = ((group - other.mean(0)) * axis).sum(1)
    length: Tensor = torch.linalg.vector_norm(axis, dim=1)
    return along / length.clamp_min(1e-12)


def separations(groups: list[Tensor]) -> Floats:
    """Of each group from each other: (n, n)."""
    apart_by = np.zeros((len(groups), len(groups)), dtype=np.float32)
    for i, group in enumerate(groups):
        for j in range(i):
            apart_by[i, j] = apart_by[j, i] = separation(group, groups[j])
    return apart_by


def grouped(apart_by: Floats, chosen: list[int], closest: float) -> list[list[int]]:
    """The chosen groups, by number, the nearest pair joined until all are ``closest`` apart.

    What was joined is as far from another group as its parts are on average: measured as one
    group it would be wide, and so near to everything.
    """
    parts = [[i] for i in chosen]
    while len(parts) > 1:
        pairs = [(i, j) for i in range(len(parts)) for j in range(i)]
        distances = [float(apart_by[np.ix_(parts[i], parts[j])].mean()) for i, j in pairs]
        nearest = int(np.argmin(distances))
        if distances[nearest] >= closest:
            break
        i, j = pairs[nearest]
        parts[j] += parts.pop(i)
    return parts


def largest(curve: Mapping[int, float]) -> int:
    """The number of classes at which the validity is largest.

    >>> largest({0: 0.1, 1: 0.4, 2: 0.3})
    1
    """
    defined = {k: value for k, value in curve.items() if not math.isnan(value)}
    return max(defined, key=lambda k: defined[k], default=0)


def sharpest_bend(curve: Mapping[int, float]) -> int:
    """The number of classes at which the validity curve bends most (its curvature).

    >>> sharpest_bend({0: 0.0, 1: 0.5, 2: 1.0, 3: 0.9, 4: 0.8})
    2
    """
    defined = sorted((k, value) for k, value in curve.items() if not math.isnan(value))
    if len(defined) < 3:
        return largest(curve)
    ks = np.array([k for k, _ in defined], dtype=float)
    values = np.array([value for _, value in defined])
    slope = np.gradient(values, ks)
    bend = np.abs(np.gradient(slope, ks)) / (1 + slope**2) ** 1.5
    return int(ks[bend[1:-1].argmax() + 1])
