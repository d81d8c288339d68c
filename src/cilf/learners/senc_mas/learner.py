"""SENC-MaS: a matrix sketch of all known data detects, a sketch of each class classifies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from cilf.core import Detection, validation
from cilf.core.deprecation import accept_old_parameters
from cilf.core.parameters import inherit_descriptions
from cilf.core.random import generator, torch_generator
from cilf.core.types import Array, Floats, Ints
from cilf.learners.base import Arrays, Learner
from cilf.learners.embedder import Embedder, check_features, find_frozen_network
from cilf.learners.novel_clustering import NovelClustering, ScoredWindow
from cilf.learners.senc_mas.frequent_directions import Sketch
from cilf.learners.shared_space import SharedSpace
from cilf.nn.memory import Memory


@inherit_descriptions
@accept_old_parameters
@dataclass(kw_only=True, repr=False, eq=False)
class SENCMaS(Learner):
    """Matrix sketches of the known data and of each class, and k-means on novel instances.

    The similarity of an instance to a sketch is the length of its projection on the sketch's main
    directions, as a unit vector. The most similar sketch of a class names the instance. The
    instance is novel if it is less similar to the sketch of all known data than nearly all held-out
    instances of that class. An update adds the new instances to the sketches; no training instance
    is kept.

    The paper has no public code: this is our reading of it.

    Parameters
    ----------
    features : str, default="auto"
        Vectors that the sketches work on. "raw" is the scaled values. "embed" is the features of a
        network that is trained on the first classes. "efficientnet-lite2", "timm:NAME" and
        "torchvision:NAME" are frozen pre-trained networks for images, "minilm" and
        "sentence:NAME-OR-FOLDER" for texts. "auto" is "minilm" for texts and "raw" otherwise.
    memory_size : int, default=2000
        Largest number of held-out instances that are kept.
    sketch_size : int, default=100
        Number of rows of each sketch.
    energy : float, default=0.95
        Share of a sketch's squared length that its main directions hold.
    accepted_share : float, default=0.95
        Share of the held-out instances of a class that its threshold accepts as known.
    calibration_size : int, default=20
        Number of labelled instances of each class that are held out of the sketches for its
        threshold.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def along(*axes):
    ...     return np.concatenate([rng.normal(9 * np.eye(20)[axis], 1.0, (40, 20))
    ...                            for axis in axes])
    >>> learner = SENCMaS(energy=0.7).fit(along(0, 1), ["left"] * 40 + ["up"] * 40)
    >>> found = learner.detect(along(3))
    >>> found.n_novel, int(found.is_novel.sum())
    (1, 38)

    References
    ----------
    Mu, Zhu, Du, Lim and Zhou, "Streaming classification with emerging new class by class matrix
    sketching", AAAI 2017. ``docs/methods/senc-mas.md`` says what is our reading.
    """

    name: ClassVar[str] = "senc-mas"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        "features": check_features,
        "memory_size": validation.whole(0),
        "sketch_size": validation.whole(4),
        **dict.fromkeys(["energy", "accepted_share"], validation.in_range(0.0, 1.0)),
        "calibration_size": validation.whole(1),
    }

    seed: int = 0
    features: str = "auto"
    memory_size: int = 2000
    clustering: NovelClustering = NovelClustering()
    sketch_size: int = 100
    energy: float = 0.95
    accepted_share: float = 0.95
    calibration_size: int = 20

    _embedder: Embedder = field(init=False)
    _length: float = field(init=False)  # root mean square of the lengths of the vectors
    _global: Sketch = field(init=False)
    _local: list[Sketch] = field(init=False)  # one for each class
    _calibration: Memory = field(init=False)

    def _wanted_features(self, X: Array) -> str | None:
        return find_frozen_network(self.features, X)

    def _fit(self, X: Array, y: Ints) -> None:
        rng = generator(self.seed, "fit")
        known, held_out = self._divide(X, y, self.calibration_size, rng)
        self._embedder = Embedder.fit(known.X, known.y, features=self.features, seed=self.seed)
        self._length = mean_length(self._embed(known.X))
        rows = self._rows(known.X)
        blank = Sketch.empty(self.sketch_size, rows.shape[1])
        n_classes = int(y.max()) + 1
        self._local = _feed([blank] * n_classes, rows, known.y)
        self._global = blank.feed(rows)
        self._calibration = held_out.rebalance(self.memory_size, rng)

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        rng = generator(self.seed, "update", self._n_updates)
        new, held_out = self._divide(X, y, self.calibration_size, rng, held_out=self._calibration)
        rows = self._rows(new.X)
        blank = Sketch.empty(*self._global.rows.shape)
        arrived = [blank] * (n_classes - len(self._local))
        self._local = _feed(self._local + arrived, rows, new.y)
        self._global = self._global.feed(rows)
        self._calibration = held_out.rebalance(self.memory_size, rng)

    def _rows(self, X: Array) -> Array:
        """Instances as unit vectors (n, d + 1), the rows of sketches.

        The last coordinate is the same for all rows. It separates opposite directions.
        """
        z = self._embed(X).astype(np.float64)
        z = np.column_stack([z, np.full(len(z), self._length)])
        return np.asarray(z / np.linalg.norm(z, axis=1, keepdims=True))

    def _predict(self, X: Array) -> Ints:
        return np.asarray(self._score_classes(X).numpy().argmax(1))

    def _score_classes(self, X: Array) -> Tensor:
        rows = self._rows(X)
        similarity = np.stack([similarities(rows, s, self.energy) for s in self._local], axis=1)
        return torch.from_numpy(similarity)

    def _embed(self, X: Array) -> Floats:
        return self._embedder.transform(X)

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
        similarity, label = self._similarity(X), self._predict(X)
        is_novel = similarity < self._thresholds()[label]
        return ScoredWindow(1 - similarity, is_novel, label, self._embed(X))

    def _similarity(self, X: Array) -> Array:
        return similarities(self._rows(X), self._global, self.energy)

    def _thresholds(self) -> Array:
        """Threshold of each class, from its own held-out instances if it has any.

        One threshold for all classes would fall with every class that is learned: the first labels
        of a class are those of its least similar instances.
        """
        thresholds = np.full(len(self._local), -np.inf)
        if len(self._calibration):
            similarity = self._similarity(self._calibration.X)
            thresholds[:] = np.quantile(similarity, 1 - self.accepted_share)
            for label in np.unique(self._calibration.y):
                own = similarity[self._calibration.y == label]
                thresholds[label] = np.quantile(own, 1 - self.accepted_share)
        return thresholds

    def _memories(self) -> tuple[Memory | None, Memory | None]:
        return None, self._calibration

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        sketches = [self._global, *self._local]
        arrays = {f"sketch.{i}": sketch.rows for i, sketch in enumerate(sketches)}
        kept = self._calibration.arrays("calibration")
        plain = {"length": self._length, "n_filled": [s.n_filled for s in sketches]}
        return arrays | kept | self._embedder.arrays(), plain

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        self._embedder = Embedder.restore(arrays, self._inner_shape, seed=self.seed)
        self._length = plain["length"]
        filled = enumerate(plain["n_filled"])
        sketches = [Sketch(arrays[f"sketch.{i}"], n_filled) for i, n_filled in filled]
        self._global, self._local = sketches[0], sketches[1:]
        self._calibration = Memory.restore(arrays, "calibration")


def _feed(sketches: list[Sketch], rows: Array, y: Ints) -> list[Sketch]:
    """The sketches of the classes, with the rows of each class added."""
    return [sketch.feed(rows[y == label]) for label, sketch in enumerate(sketches)]


def mean_length(z: Floats) -> float:
    """Root mean square of the lengths of these vectors; 1 if they have none.

    >>> mean_length(np.array([[3.0, 4.0], [0.0, 5.0]]))
    5.0
    """
    return float(np.sqrt(np.square(z, dtype=np.float64).sum(1).mean())) or 1.0


def similarities(rows: Array, sketch: Sketch, energy: float) -> Array:
    """Length of each row's projection on the main directions of a sketch, in float64."""
    return np.asarray(np.linalg.norm(rows @ sketch.main_directions(energy).T, axis=1))
