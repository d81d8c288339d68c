"""DTC: deep transfer clustering of a window with the features of a classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cilf.clustering.evidence import counts_to_try
from cilf.clustering.kmeans import fill_empty
from cilf.clustering.novel_clusters import novel_shares
from cilf.core import Detection, validation
from cilf.core.distances import squared_distances
from cilf.core.parameters import inherit_descriptions
from cilf.core.random import derive_seed, torch_generator
from cilf.core.types import Array, Floats, Ints
from cilf.learners.classifier import ClassifierLearner
from cilf.learners.dtc import class_count, deep_clustering
from cilf.learners.dtc.class_count import Counting, Probes
from cilf.learners.dtc.deep_clustering import Tuning
from cilf.nn.network import as_tensor, embed, to_numpy


class _Clusters(NamedTuple):
    """The result of deep clustering."""

    z: Tensor  # (n, n_clusters)
    q: Floats  # (n, n_clusters)
    assignment: Ints  # (n,) no cluster is empty


@inherit_descriptions
@dataclass(kw_only=True, repr=False, eq=False)
class DTC(ClassifierLearner):
    """Deep transfer clustering of whole windows: clusters of uncertain instances are novel.

    The features of the classifier are reduced to as many main directions as there are clusters, and
    tuned on the unlabelled window so that instances come closer to their nearest centre. The number
    of clusters is the one with which k-means finds known classes again.

    Parameters
    ----------
    tuning : Tuning, default=Tuning()
        Deep clustering of a window.
    counting : Counting, default=Counting()
        Estimation of the number of novel classes.
    least_novel_share : float, default=0.25
        Share of uncertain instances above which a cluster is a novel class.

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
        "least_novel_share": validation.in_range(0.0, 1.0),
    }

    tuning: Tuning = Tuning()
    counting: Counting = Counting()
    least_novel_share: float = 0.25

    def _detect(self, X: Array, n_novel: int | None) -> Detection:
        scored = self._score_window(X)
        x = as_tensor(X, self._network.device)
        features = torch.from_numpy(scored.points).to(x.device)
        n_clusters, curve = self._count(features, n_novel)
        clusters = self._cluster(x, features, n_clusters, fill=n_novel is not None)
        shares = novel_shares(clusters.assignment, scored.is_novel)  # of each cluster
        n_found = int((shares >= self.least_novel_share).sum()) if n_novel is None else n_novel
        position = np.full(len(shares), -1, dtype=np.int64)
        position[np.argsort(-shares, kind="stable")[:n_found]] = np.arange(n_found)
        return Detection(
            novelty=((clusters.q @ shares + scored.novelty) / 2).astype(np.float32),
            label=self.classes_[scored.label],
            cluster=position[clusters.assignment],
            n_novel=n_found,
            curve=curve,
            embedding=to_numpy(clusters.z),
        )

    def _count(self, features: Tensor, n_novel: int | None) -> tuple[int, dict[int, float]]:
        """Number of clusters of a window with its known classes, and the score of each number."""
        n_known = len(self._classes)
        tried = counts_to_try(self.counting.k_max, len(features)) if n_novel is None else [n_novel]
        labelled = self._memory.combine(self._calibration.X, self._calibration.y)
        reduce = deep_clustering.principal_head(features, n_known + max(tried))
        with torch.no_grad():
            probes = Probes(reduce(self._features_of(labelled.X)), labelled.y, n_known)
            points = reduce(features)
        rng = torch_generator(self.seed, "count", self._n_updates)
        clusterings = self.counting.cluster(points, probes, tried, rng)
        if n_novel is not None:
            return max(self.counting.count_filled(clusterings[n_novel]), n_novel), {}
        n_found = self.counting.choose(clusterings)
        return self.counting.count_filled(clusterings[n_found]), class_count.curve(clusterings)

    def _features_of(self, X: Array) -> Tensor:
        if len(X) == 0:
            return torch.zeros(0, self._network.head.in_features, device=self._network.device)
        return self._outputs(X)[1]

    def _cluster(self, x: Tensor, features: Tensor, n_clusters: int, *, fill: bool) -> _Clusters:
        """Deep clustering of a window; ``fill`` leaves no cluster empty."""
        key = ("detect", self._n_updates)
        network = deep_clustering.principal_clusters(
            self._network, features, n_clusters, torch_generator(self.seed, *key)
        )
        seed = derive_seed(self.seed, *key)
        deep_clustering.tune(network, x, self.tuning, self.training, seed=seed)
        z, centres = embed(network, x), network.get_parameter("centres").detach()
        q = deep_clustering.soft_assignments(z, centres)
        nearest = q.argmax(1)
        if fill:
            nearest = fill_empty(nearest, squared_distances(z, centres))
        filled, assignment = np.unique(nearest.cpu().numpy(), return_inverse=True)
        return _Clusters(z, to_numpy(q)[:, filled], assignment)
