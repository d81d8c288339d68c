"""DTC: deep transfer clustering of a window with the features of a classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cilf.clustering.evidence import counts_to_try
from cilf.clustering.kmeans import fill_empty, kmeans
from cilf.clustering.novel_clusters import novel_shares
from cilf.core import Detection, validation
from cilf.core.deprecation import accept_old_parameters
from cilf.core.distances import squared_distances
from cilf.core.parameters import inherit_descriptions
from cilf.core.random import derive_seed, torch_generator
from cilf.core.types import Array, Floats, Ints
from cilf.learners.classifier import ClassifierLearner
from cilf.learners.dtc import class_count, deep_clustering
from cilf.learners.dtc.class_count import Counting, Probes
from cilf.learners.dtc.deep_clustering import Tuning
from cilf.learners.novel_clustering import ScoredWindow
from cilf.learners.shared_space import OWN, SHARED, SPACES
from cilf.nn.network import Network, as_tensor, embed, to_numpy


class _Count(NamedTuple):
    """The number of clusters of a window, and how many of them are novel classes."""

    n_clusters: int
    n_novel: int
    curve: dict[int, float]  # the score of each number of novel classes


class _Clusters(NamedTuple):
    """The result of deep clustering."""

    network: Network  # tuned, with a centre for each cluster
    filled: Ints  # the centres that have instances
    z: Tensor  # (n, n_centres)
    assignment: Ints  # (n,) of the filled centres

    def assign(self, X: Array) -> Ints:
        """The nearest filled centre of other instances."""
        q = deep_clustering.assignments(self.network, as_tensor(X, self.network.device))
        return q[:, self.filled].argmax(1).cpu().numpy()


@inherit_descriptions
@accept_old_parameters
@dataclass(kw_only=True, repr=False, eq=False)
class DTC(ClassifierLearner):
    """Deep transfer clustering of whole windows: clusters of uncertain instances are novel.

    The features of the classifier are reduced to as many main directions as there are clusters, and
    tuned on the unlabelled window so that instances come closer to their nearest centre. The number
    of clusters is the one with which k-means finds known classes again. The clusters with the
    largest shares of uncertain instances are novel, as many as there are more clusters than known
    classes.

    Parameters
    ----------
    tuning : Tuning, default=Tuning()
        Deep clustering of a window.
    counting : Counting, default=Counting()
        Estimation of the number of novel classes.
    space : {"own", "shared"}, default="own"
        Space of the novel clusters. "own" is that of the deep clustering. "shared" clusters the
        instances that the deep clustering calls novel again, and counts their classes, as CILF
        does, in its space.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 0.3, size=(30, 2)) for c in (-2, 0, 2)])
    >>> learner = DTC(epochs=5).fit(X[:60], ["a"] * 30 + ["b"] * 30)
    >>> learner.detect(X, n_novel=1).n_novel
    1

    References
    ----------
    Han, Vedaldi and Zisserman, "Learning to discover novel visual categories via deep transfer
    clustering", ICCV 2019. ``docs/methods/dtc.md`` numbers the differences.
    """

    name: ClassVar[str] = "dtc"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **ClassifierLearner.domains,
        "space": validation.among(SPACES),
    }

    tuning: Tuning = Tuning()
    counting: Counting = Counting()
    space: str = OWN

    def _detect(self, X: Array, n_novel: int | None) -> Detection:
        scored = self._score_window(X)
        features = torch.from_numpy(scored.points).to(self._network.device)
        count = self._count(features, n_novel)
        clusters = self._cluster(X, features, count.n_clusters, fill=n_novel is not None)
        shares = novel_shares(clusters.assignment, scored.is_novel)
        position = choose_novel(shares, count.n_novel)
        cluster, curve, points = position[clusters.assignment], count.curve, to_numpy(clusters.z)
        if self.space == SHARED:
            shared = self._shared_space(X, lambda X: position[clusters.assign(X)] >= 0)
            rng = torch_generator(self.seed, SHARED, self._n_updates)
            (cluster, curve), points = shared.cluster(
                cluster >= 0, n_novel, self.counting.k_max, rng
            )
        return Detection(
            novelty=self._measure_novelty(features, scored),
            label=self.classes_[scored.label],
            cluster=cluster,
            n_novel=int(cluster.max()) + 1,
            curve=curve,
            embedding=points,
        )

    def _count(self, features: Tensor, n_novel: int | None) -> _Count:
        """Estimate the number of clusters of a window, unless that of novel classes is given."""
        n_known = len(self._classes)
        tried = self._counts_to_try(features) if n_novel is None else [n_novel]
        labelled = self._memory.combine(self._calibration.X, self._calibration.y)
        reduce = deep_clustering.principal_head(features, n_known + max(tried))
        with torch.no_grad():
            probes = Probes(reduce(self._features_of(labelled.X)), labelled.y, n_known)
            points = reduce(features)
        rng = torch_generator(self.seed, "count", self._n_updates)
        clusterings = self.counting.cluster(points, probes, tried, rng)
        if n_novel is not None:
            n_clusters = self.counting.count_filled(clusterings[n_novel])
            return _Count(max(n_clusters, n_novel), n_novel, {})
        chosen = clusterings[self.counting.choose(clusterings)]
        return _Count(
            self.counting.count_filled(chosen),
            self.counting.count_novel(chosen),
            class_count.curve(clusterings),
        )

    def _counts_to_try(self, features: Tensor) -> range:
        return counts_to_try(self.counting.k_max, len(features))

    def _measure_novelty(self, features: Tensor, scored: ScoredWindow) -> Floats:
        """The mean of an instance's own uncertainty and the share of uncertain ones in its cluster.

        The share is the mean over clusterings, one for each number of classes that is tried. So the
        novelty does not depend on the number that is found.
        """
        rng = torch_generator(self.seed, "novelty", self._n_updates)
        shares = []
        for k in self._counts_to_try(features):
            n_clusters = min(len(self._classes) + k, len(features))
            assignment = kmeans(features, n_clusters, rng).cpu().numpy()
            shares.append(novel_shares(assignment, scored.is_novel)[assignment])
        return np.asarray((np.mean(shares, axis=0) + scored.novelty) / 2, dtype=np.float32)

    def _features_of(self, X: Array) -> Tensor:
        if len(X) == 0:
            return torch.zeros(0, self._network.head.in_features, device=self._network.device)
        return self._outputs(X)[1]

    def _cluster(self, X: Array, features: Tensor, n_clusters: int, *, fill: bool) -> _Clusters:
        """Deep clustering of a window; ``fill`` leaves no cluster empty."""
        key, x = ("detect", self._n_updates), as_tensor(X, self._network.device)
        network = deep_clustering.principal_clusters(
            self._network, features, n_clusters, torch_generator(self.seed, *key)
        )
        seed = derive_seed(self.seed, *key)
        deep_clustering.tune(network, x, self.tuning, self.training, seed=seed)
        z, centres = embed(network, x), network.get_parameter("centres").detach()
        nearest = deep_clustering.soft_assignments(z, centres).argmax(1)
        if fill:
            nearest = fill_empty(nearest, squared_distances(z, centres))
        filled, assignment = np.unique(nearest.cpu().numpy(), return_inverse=True)
        return _Clusters(network, filled, z, assignment)


def choose_novel(shares: Array, n_novel: int) -> Ints:
    """The novel class that each cluster is, -1 for known ones: the largest shares are novel.

    >>> choose_novel(np.array([0.1, 0.9, 0.2, 0.5]), 2).tolist()
    [-1, 0, -1, 1]
    """
    position = np.full(len(shares), -1, dtype=np.int64)
    largest = np.argsort(-shares, kind="stable")[:n_novel]
    position[largest] = np.arange(len(largest))
    return position
