"""A small learner that keeps the contract; broken ones derive from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from cilf.clustering import novel_clusters
from cilf.core import Detection
from cilf.core.random import torch_generator
from cilf.learners.base import Learner


class Toy(Learner):
    """Nearest class mean; far from every mean is novel. Keeps the contract."""

    name: ClassVar[str] = "toy"

    def __init__(self, *, seed: int = 0, reach: float = 1.2) -> None:
        self.seed = seed
        self.reach = reach

    def _fit(self, X, y):
        self._sums, self._counts = self._totals(X, y, int(y.max()) + 1)
        self._radius = float(self._distances(X).min(1).mean())

    def _update(self, X, y, n_classes):
        sums, counts = self._totals(X, y, n_classes)
        known = len(self._counts)
        sums[:known] += self._sums
        counts[:known] += self._counts
        self._sums, self._counts = sums, counts

    def _totals(self, X, y, n_classes):
        members = np.eye(n_classes)[y]
        return members.T @ self._embed(X).astype(float), members.sum(0)

    def _embed(self, X):
        return X.reshape(len(X), -1).astype(np.float32) / np.float32(255)

    def _distances(self, X):
        means = self._sums / self._counts[:, None]
        return np.linalg.norm(self._embed(X)[:, None] - means, axis=2)

    def _predict(self, X):
        return self._distances(X).argmin(1)

    def _novelty(self, X):
        return self._distances(X).min(1)

    def _detect(self, X, n_novel):
        novelty = self._novelty(X)
        marked = novel_clusters.take_at_least(
            n_novel or 0, novelty > self.reach * self._radius, novelty
        )
        cluster, curve = novel_clusters.cluster_novel(
            torch.from_numpy(self._embed(X)), marked, n_novel,
            k_max=4, least_silhouette=0.3, generator=torch_generator(self.seed, "detect"),
        )  # fmt: skip
        return Detection(
            novelty=novelty.astype(np.float32),
            label=self.classes_[self._predict(X)],
            cluster=cluster,
            n_novel=int(cluster.max()) + 1,
            curve=curve,
            embedding=self._embed(X),
        )

    def _get_state(self):
        return {"sums": self._sums, "counts": self._counts}, {"radius": self._radius}

    def _set_state(self, arrays, plain):
        self._sums, self._counts = arrays["sums"], arrays["counts"]
        self._radius = plain["radius"]


def changed(found: Detection, **parts: Any) -> Detection:
    names = ("novelty", "label", "cluster", "n_novel", "curve", "embedding")
    return Detection(**({name: getattr(found, name) for name in names} | parts))


def name_cases(broken: Mapping[str, list[type[Toy]]]) -> list[Any]:
    """One test case for each broken learner: the check that catches it, and its class."""
    return [
        pytest.param(name, learner, id=f"{name}-{learner.__name__}")
        for name, learners in broken.items()
        for learner in learners
    ]
