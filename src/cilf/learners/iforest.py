"""Isolation forest: what few random cuts set apart from the first training data is novel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.ensemble import IsolationForest

from cilf.core import validation
from cilf.core.distances import squared_distances
from cilf.core.notices import notice
from cilf.core.random import derived_seed, generator
from cilf.core.types import Array, Ints
from cilf.learners.base import Arrays
from cilf.learners.marking import MarkingLearner, Marks
from cilf.learners.with_vectors import WithVectors
from cilf.nn.memory import Memory


@dataclass(kw_only=True, repr=False, eq=False)
class IForest(WithVectors, MarkingLearner):
    """Isolation forest on features, k-means on what it marks, a memory that names classes.

    The forest stays as it was first fitted, so a class that was learned goes on looking novel;
    an update only adds labelled instances to the memory, and names come from the nearest one.

    Args:
        n_estimators: trees.
        max_samples: instances each tree is grown on, at most.
        max_features: share of the features each tree looks at.
        contamination: share of training data the forest may call novel, or "auto" for the
            threshold of the original method.
        sample_size: training instances that are kept to grow the forest from.
        seed, features: see :class:`WithVectors`.
        k_max, least_silhouette, cluster_all, memory_size: see :class:`MarkingLearner`.

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

    domains: ClassVar[Mapping[str, validation.Check]] = {
        **WithVectors.domains,
        **MarkingLearner.domains,
        "n_estimators": validation.whole(1),
        **dict.fromkeys(["max_samples", "sample_size", "memory_size"], validation.whole(2)),
        "max_features": validation.between(1e-6, 1.0),
        "contamination": validation.number_or(["auto"], least=1e-6, most=0.5),
    }

    n_estimators: int = 100
    max_samples: int = 256
    max_features: float = 1.0
    contamination: float | str = "auto"
    sample_size: int = 10_000

    _sample: Array = field(init=False)
    _settings: dict[str, Any] = field(init=False)
    _forest: IsolationForest = field(init=False)
    _memory: Memory = field(init=False)

    @classmethod
    def paper(cls, **changed: Any) -> Self:
        """As in the comparison of the paper: known and novel instances are clustered together."""
        return cls().set_params(**({"cluster_all": True} | changed))

    def _fit(self, X: Array, y: Ints) -> None:
        rng = generator(self.seed, "fit")
        self._learn_to_see(X, y)
        if len(X) > self.sample_size:
            notice(
                f"iforest grows from sample_size={self.sample_size} of the instances, drawn at "
                "random: raise sample_size to use more."
            )
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
        self._forest = IsolationForest(**settings).fit(self._embed(sample))

    def _predict(self, X: Array) -> Ints:
        # float64, so that an instance gets the same name alone and in a batch
        remembered = torch.from_numpy(self._embed(self._memory.X)).double()
        distances = squared_distances(torch.from_numpy(self._embed(X)).double(), remembered)
        return np.asarray(self._memory.y[distances.argmin(1).numpy()])

    def _mark(self, X: Array) -> Marks:
        z = self._embed(X)
        novelty = -self._forest.score_samples(z)
        return Marks(novelty, novelty > -self._forest.offset_, self._predict(X), z)

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        rng = generator(self.seed, "update", self._n_updates)
        self._memory = self._memory.joined(X, y).rebalanced(self.memory_size, rng)

    def _kept(self) -> tuple[Memory | None, Memory | None]:
        return self._memory, None

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays = {"sample": self._sample} | self._memory.arrays("memory") | self._sight()
        return arrays, {"forest": self._settings}

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        self._set_sight(self._inner_shape, arrays)
        self._grow(arrays["sample"], plain["forest"])
        self._memory = Memory.stored(arrays, "memory")
