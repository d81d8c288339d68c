"""Isolation forest: an instance that few random splits isolate is novel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.ensemble import IsolationForest

from cilf.core import Detection, validation
from cilf.core.distances import squared_distances
from cilf.core.notices import warn_once
from cilf.core.parameters import inherit_descriptions
from cilf.core.random import derive_seed, generator, torch_generator
from cilf.core.types import Array, Floats, Ints
from cilf.learners.base import Arrays
from cilf.learners.editable import EditableLearner, require_some
from cilf.learners.embedder import Embedder, check_features, find_frozen_network
from cilf.learners.novel_clustering import NovelClustering, ScoredWindow
from cilf.learners.shared_space import SharedSpace
from cilf.nn.memory import Memory


@inherit_descriptions
@dataclass(kw_only=True, repr=False, eq=False)
class IForest(EditableLearner):
    """Isolation forest on vectors, k-means on novel instances, and a memory that names classes.

    The forest stays as it was first fitted, so a class still seems novel after its update. An
    update adds labelled instances to the memory. The nearest instance of the memory names the
    class of an instance.

    Parameters
    ----------
    features : str, default="auto"
        Vectors that the forest works on. "raw" is the scaled values. "embed" is the features of a
        network that is trained on the first classes. "efficientnet-lite2", "timm:NAME" and
        "torchvision:NAME" are frozen pre-trained networks for images, "minilm" and
        "sentence:NAME-OR-FOLDER" for texts. "auto" is "minilm" for texts and "raw" otherwise.
    memory_size : int, default=2000
        Largest number of labelled instances in the memory.
    n_estimators : int, default=100
        Number of trees.
    max_samples : int, default=256
        Largest number of instances that a tree is grown on.
    max_features : float, default=1.0
        Share of the features that a tree splits on.
    contamination : float or "auto", default="auto"
        Share of the training data that the threshold calls novel. "auto" is the threshold of the
        original method.
    sample_size : int, default=10000
        Largest number of training instances that are kept to grow the forest from.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def around(x, y):
    ...     return rng.normal((x, y), 0.5, size=(40, 2))
    >>> X = np.concatenate([around(-3, 0), around(3, 0)])
    >>> learner = IForest(contamination=0.05).fit(X, ["left"] * 40 + ["right"] * 40)
    >>> found = learner.detect(np.concatenate([around(0, 9), around(0, -9)]))
    >>> found.n_novel, int(found.is_novel.sum())
    (2, 80)

    References
    ----------
    Liu, Ting and Zhou, "Isolation Forest", ICDM 2008. ``docs/methods/iforest.md`` numbers the
    differences.
    """

    name: ClassVar[str] = "iforest"
    expected_failures: ClassVar[Mapping[str, str]] = {
        "learned_class_looks_less_novel": "the forest stays as it was first fitted"
    }
    domains: ClassVar[Mapping[str, validation.Check]] = {
        "features": check_features,
        "n_estimators": validation.whole(1),
        **dict.fromkeys(["max_samples", "sample_size", "memory_size"], validation.whole(2)),
        "max_features": validation.in_range(1e-6, 1.0),
        "contamination": validation.number_or(["auto"], least=1e-6, most=0.5),
    }

    seed: int = 0
    features: str = "auto"
    memory_size: int = 2000
    clustering: NovelClustering = NovelClustering()
    n_estimators: int = 100
    max_samples: int = 256
    max_features: float = 1.0
    contamination: float | str = "auto"
    sample_size: int = 10_000

    _embedder: Embedder = field(init=False)
    _sample: Memory = field(init=False)  # what the forest is grown on
    _settings: dict[str, Any] = field(init=False)
    _forest: IsolationForest = field(init=False)
    _memory: Memory = field(init=False)

    @classmethod
    def paper(cls, **changed: Any) -> Self:
        """A learner as the paper compares it: known and novel instances are clustered together."""
        return cls().set_params(**({"clustering__cluster_all": True} | changed))

    def _wanted_features(self, X: Array) -> str | None:
        return find_frozen_network(self.features, X)

    def _fit(self, X: Array, y: Ints) -> None:
        rng = generator(self.seed, "fit")
        self._embedder = Embedder.fit(X, y, features=self.features, seed=self.seed)
        if len(X) > self.sample_size:
            warn_once(
                f"iforest grows from sample_size={self.sample_size} of the instances, drawn at "
                "random: raise sample_size to use more."
            )
        sample = Memory(X, y).rows(np.sort(rng.permutation(len(X))[: self.sample_size]))
        settings = {
            "n_estimators": self.n_estimators,
            "max_samples": min(self.max_samples, len(sample)),
            "max_features": float(self.max_features),
            "contamination": self.contamination,
            "random_state": derive_seed(self.seed, "forest"),
        }
        self._grow(sample, settings)
        self._memory = Memory(X, y).rebalance(self.memory_size, rng)

    def _grow(self, sample: Memory, settings: Mapping[str, Any]) -> None:
        self._sample, self._settings = sample, dict(settings)
        self._forest = IsolationForest(**settings).fit(self._embed(sample.X))

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        rng = generator(self.seed, "update", self._n_updates)
        self._memory = self._memory.combine(X, y).rebalance(self.memory_size, rng)

    def _reassign_classes(self, positions: Ints, n_classes: int) -> None:
        self._change_sample(self._sample.reassign(positions))
        self._memory = self._memory.reassign(positions)

    def _retract(self, X: Array, y: Ints) -> None:
        grown_on, remembered = self._sample.find(X, y), self._memory.find(X, y)
        self._change_sample(self._sample.without(row for row in grown_on if row is not None))
        self._memory = self._memory.without(row for row in remembered if row is not None)

    def _change_sample(self, sample: Memory) -> None:
        """Grow the forest again if instances have left its sample."""
        if len(sample) == len(self._sample):
            self._sample = sample
            return
        require_some(len(sample))
        most = min(self._settings["max_samples"], len(sample))
        self._grow(sample, self._settings | {"max_samples": most})

    def _detect(self, X: Array, n_novel: int | None) -> Detection:
        rng = torch_generator(self.seed, "detect", self._n_updates)
        shared = SharedSpace(
            X,
            self._memories(),
            self._embedder.learn_views,
            lambda X: self._score_window(X).is_novel,
            self.seed,
        )
        return self.clustering.detect(self._score_window(X), n_novel, self.classes_, rng, shared)

    def _score_window(self, X: Array) -> ScoredWindow:
        z = self._embed(X)
        novelty = -self._forest.score_samples(z)
        return ScoredWindow(novelty, novelty > -self._forest.offset_, self._predict(X), z)

    def _predict(self, X: Array) -> Ints:
        # float64, so that an instance gets the same name alone and in a batch
        remembered = torch.from_numpy(self._embed(self._memory.X)).double()
        distances = squared_distances(torch.from_numpy(self._embed(X)).double(), remembered)
        return np.asarray(self._memory.y[distances.argmin(1).numpy()])

    def _embed(self, X: Array) -> Floats:
        return self._embedder.transform(X)

    def _memories(self) -> tuple[Memory | None, Memory | None]:
        return self._memory, None

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        sample = {"sample": self._sample.X, "sample.y": self._sample.y}
        arrays = sample | self._memory.arrays("memory")
        return arrays | self._embedder.arrays(), {"forest": self._settings}

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        self._embedder = Embedder.restore(arrays, self._inner_shape, seed=self.seed)
        self._memory = Memory.restore(arrays, "memory")
        X = arrays["sample"]
        y = arrays["sample.y"] if "sample.y" in arrays else self._predict(X)  # of an earlier cilf
        self._grow(Memory(X, y), plain["forest"])
