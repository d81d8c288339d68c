"""How strongly a cluster speaks for a novel class: what no mixture of known classes explains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cilf.clustering.kmeans import Clusters
from cilf.clustering.p_values import PValues
from cilf.clustering.separation import MIN_CLUSTER_SIZE

MOST_COVERAGE = 8.0  # digits that the number of instances contributes at most
P_WEIGHT = 3.0  # instances that the mean p-value of a cluster counts for
TINY = 1e-15


@dataclass(frozen=True)
class KnownShares:
    """The labelled instances of known classes in each cluster, and the classes of the window.

    Labelled instances are assigned to the clusters as those of the window are. A cluster holds a
    share of each known class. Labelled instances estimate it, the better the more they are.
    """

    inside: Tensor  # (n_clusters, n_known) labelled instances in each cluster
    total: Tensor  # (n_known,) labelled instances
    window: Tensor  # (n_known,) instances of the window whose nearest class it is

    @classmethod
    def count(
        cls, clusters: Tensor, labels: Tensor, nearest: Tensor, n_clusters: int, n_known: int
    ) -> KnownShares:
        """Count labelled instances by their clusters and labels, the window by nearest class."""
        flat = torch.bincount(clusters * n_known + labels, minlength=n_clusters * n_known)
        inside = flat.view(n_clusters, n_known)
        return cls(inside, inside.sum(0), torch.bincount(nearest, minlength=n_known))

    def surprise(self, cluster: int, nearest: Tensor) -> float:
        """How unlikely it is that known classes put as many instances into the cluster.

        ``nearest`` are the nearest known classes of its members. The mixture of these classes is
        that of the window. The share of each in the cluster follows a beta distribution, given its
        labelled instances, so that the number of members follows a beta-binomial one. The result
        is the negative decimal logarithm of the probability of so many members or more.
        """
        from scipy.stats import betabinom  # half a second to import

        is_there = torch.bincount(nearest, minlength=len(self.total)) > 0
        sizes = self.window[is_there].double()
        inside = self.inside[cluster][is_there].double() + 1
        outside = self.total[is_there].double() + 2 - inside
        share = inside / (inside + outside)
        error = share * (1 - share) / (inside + outside + 1)
        weights = sizes / sizes.sum()
        mean, variance = float(weights @ share), float(weights.square() @ error)
        evidence = max(mean * (1 - mean) / variance - 1, 1.0)
        n, n_members = int(sizes.sum()), len(nearest)
        a, b = mean * evidence, (1 - mean) * evidence
        probability = float(betabinom.sf(n_members - 1, max(n, n_members), a, b))
        return -float(np.log10(max(probability, TINY)))


def measure_support(
    clusters: Clusters, known: PValues, labelled_clusters: Tensor, labels: Tensor
) -> list[float]:
    """The support of each novel cluster, in digits.

    It is the sum of two terms. The first is the surprise at the number of its members, which counts
    by number: few labelled instances vouch for little. The second is the mean of the digits of its
    members' p-values. Both are small for a part of a known class, whatever else the window holds.
    """
    n_clusters, n_known = len(clusters.centres), clusters.n_known
    shares = KnownShares.count(labelled_clusters, labels, known.nearest, n_clusters, n_known)
    digits = -known.p.double().log10()
    found = []
    for cluster in range(n_known, n_clusters):
        members = clusters.assignment == cluster
        if int(members.sum()) < MIN_CLUSTER_SIZE:
            found.append(0.0)
            continue
        surprise = min(shares.surprise(cluster, known.nearest[members]), MOST_COVERAGE)
        found.append(surprise + P_WEIGHT * float(digits[members].mean()))
    return found
