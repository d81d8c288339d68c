"""Isolation forest: what few random cuts set apart from the first training data is novel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.ensemble import IsolationForest

from cilf.core import Detection, validation
from cilf.core.random import derived_seed, generator, torch_generator
from cilf.core.types import Array, Floats, Ints
from cilf.learners import splitting
from cilf.learners.base import Arrays, Learner
from cilf.nn import pretrained
from cilf.nn.losses import squared_distances
from cilf.nn.memory import Memory
from cilf.nn.network import FARTHEST


class IForest(Learner):
    """Isolation forest on features, k-means on what it marks, a memory that names classes.

    The forest stays as it was first fitted, so a class that was learned goes on looking novel;
    an update only adds labelled instances to the memory, and names come from the nearest one.

    Args:
        seed: of the forest, the clustering and the memory.
        n_estimators: trees.
        max_samples: instances each tree is grown on, at most.
        max_features: share of the features each tree looks at.
        contamination: share of training data the forest may call novel, or "auto" for the
            threshold of the original method.
        k_max: most novel classes looked for in one window.
        least_silhouette: splitting the novel instances must be worth more than this.
        cluster_all: cluster known and novel instances together, as the paper did; a cluster
            that is mostly marked is a novel class.
        sample_size: training instances that are kept to grow the forest from.
        memory_size: labelled instances that are kept to name things.
        features: "raw" values, or those of a frozen pre-trained network: "efficientnet-lite0",
            "timm:NAME", "torchvision:NAME" (images), "minilm", "sentence:NAME-OR-FOLDER" (texts).
            "auto" is "minilm" for texts, else "raw".

    Attributes:
        classes_: the known classes, in order of arrival.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> def around(x, y):
        ...     return rng.normal((x, y), 0.5, size=(40, 2))
        >>> X = np.concatenate([around(-3, 0), around(3, 0)])
        >>> learner = IForest(contamination=0.05).fit(X, ["left"] * 40 + ["right"] * 40)
        >>> found = learner.detect(np.concatenate([around(0, 9), around(0, -9)]))
        >>> found.n_novel, int(found.is_novel.sum())
        (2, 80)

    Reference: Liu, Ting and Zhou, "Isolation Forest", ICDM 2008.

    Differences from the paper that compares it: the novel instances are clustered alone
    (``IForest.paper()`` clusters everything); the number of clusters is estimated.
    """

    name: ClassVar[str] = "iforest"
    expected_failures: ClassVar[Mapping[str, str]] = {
        "learned_class_looks_less_novel": "the forest stays as it was first fitted"
    }

    def __init__(
        self,
        *,
        seed: int = 0,
        n_estimators: int = 100,
        max_samples: int = 256,
        max_features: float = 1.0,
        contamination: float | str = "auto",
        k_max: int = 8,
        least_silhouette: float = 0.25,
        cluster_all: bool = False,
        sample_size: int = 10_000,
        memory_size: int = 2000,
        features: str = "auto",
    ) -> None:
        self.seed = seed
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.max_features = max_features
        self.contamination = contamination
        self.k_max = k_max
        self.least_silhouette = least_silhouette
        self.cluster_all = cluster_all
        self.sample_size = sample_size
        self.memory_size = memory_size
        self.features = features

    @classmethod
    def paper(cls, **changed: Any) -> Self:
        """As in the comparison of the paper: known and novel instances are clustered together."""
        return cls().set_params(**({"cluster_all": True} | changed))

    def _check_parameters(self) -> None:
        for name in ("n_estimators", "k_max"):
            validation.whole_number(name, getattr(self, name), least=1)
        for name in ("max_samples", "sample_size", "memory_size"):
            validation.whole_number(name, getattr(self, name), least=2)
        validation.number("max_features", self.max_features, least=1e-6, most=1.0)
        validation.number("least_silhouette", self.least_silhouette, least=-1.0, most=1.0)
        if not pretrained.is_frozen(self.features):
            validation.one_of("features", self.features, ["auto", "raw", *pretrained.FROZEN])
        if isinstance(self.contamination, str):
            validation.one_of("contamination", self.contamination, ["auto"])
        else:
            validation.number("contamination", self.contamination, least=1e-6, most=0.5)

    def _wanted_features(self, X: Array) -> str | None:
        if X.ndim > 1 and self.features in ("auto", "raw"):
            return None
        return pretrained.chosen(self.features, X, parameter="features")

    def _fit(self, X: Array, y: Ints) -> None:
        rng = generator(self.seed, "fit")
        sample = X[np.sort(rng.permutation(len(X))[: self.sample_size])]
        self._grow(
            sample,
            {
                "n_estimators": self.n_estimators,
                "max_samples": min(self.max_samples, len(sample)),
                "max_features": float(self.max_features),
                "contamination": self.contamination,
                "random_state": derived_seed(self.seed, "forest"),
            },
        )
        self._memory = Memory(X, y).rebalanced(self.memory_size, rng)

    def _grow(self, sample: Array, settings: Mapping[str, Any]) -> None:
        self._sample, self._settings = sample, dict(settings)
        self._mean, self._std = _scaling(sample)
        self._forest = IsolationForest(**settings).fit(self._embed(sample))

    def _embed(self, X: Array) -> Floats:
        scaled = np.clip((X - self._mean) / self._std, -FARTHEST, FARTHEST)
        return scaled.reshape(len(X), -1).astype(np.float32)

    def _predict(self, X: Array) -> Ints:
        # float64, so that an instance gets the same name alone and in a batch
        remembered = torch.from_numpy(self._embed(self._memory.X)).double()
        distances = squared_distances(torch.from_numpy(self._embed(X)).double(), remembered)
        return np.asarray(self._memory.y[distances.argmin(1).numpy()])

    def _detect(self, X: Array, n_novel: int | None) -> Detection:
        z = self._embed(X)
        novelty = -self._forest.score_samples(z)
        cluster, curve = self._split(z, novelty, n_novel)
        return Detection(
            novelty=novelty.astype(np.float32),
            label=self.classes_[self._predict(X)],
            cluster=cluster,
            n_novel=int(cluster.max()) + 1,
            curve=curve,
            embedding=z,
        )

    def _split(self, z: Floats, novelty: Array, n_novel: int | None) -> splitting.Split:
        draws = torch_generator(self.seed, "detect", self._n_updates)
        marked = novelty > -self._forest.offset_
        if self.cluster_all:
            return splitting.split_all(
                torch.from_numpy(z), marked, len(self._classes), n_novel,
                k_max=self.k_max, generator=draws,
            )  # fmt: skip
        return splitting.split_marked(
            torch.from_numpy(z), splitting.at_least(n_novel or 0, marked, novelty), n_novel,
            k_max=self.k_max, least_silhouette=self.least_silhouette, generator=draws,
        )  # fmt: skip

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        rng = generator(self.seed, "update", self._n_updates)
        self._memory = self._memory.joined(X, y).rebalanced(self.memory_size, rng)

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays = {"sample": self._sample, "memory": self._memory.X, "memory_y": self._memory.y}
        return arrays, {"forest": self._settings}

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        self._grow(arrays["sample"], plain["forest"])
        self._memory = Memory(arrays["memory"], arrays["memory_y"])


def _scaling(X: Array) -> tuple[Array, Array]:
    """Mean and deviation of each feature (vectors) or channel (images); 1 where constant.

    Not of each pixel: the border of an image hardly varies, and would rule every distance.
    """
    axes = {2: (0,), 3: (0, 1, 2), 4: (0, 1, 2)}[X.ndim]
    mean = X.mean(axes, dtype=np.float64)
    std = X.std(axes, dtype=np.float64)
    return mean, np.where(std > 1e-6 * np.abs(mean), std, 1.0)
