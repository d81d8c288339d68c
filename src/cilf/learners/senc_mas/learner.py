"""SENC-MaS: a sketch of all known data tells what is novel, a sketch of each class names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from cilf.core import validation
from cilf.core.random import generator
from cilf.core.types import Array, Floats, Ints
from cilf.learners.base import Arrays
from cilf.learners.marking import MarkingLearner, Marks
from cilf.learners.senc_mas.frequent_directions import Sketch
from cilf.learners.with_vectors import WithVectors
from cilf.nn.memory import Memory, set_aside


@dataclass(kw_only=True, repr=False, eq=False)
class SENCMaS(WithVectors, MarkingLearner):
    """Matrix sketches of the known data and of each class, and k-means on what is marked novel.

    How similar an instance is to a sketch is the length of its projection on the sketch's main
    directions, as a unit vector. Of the sketches of the classes, the most similar one names the
    instance; if it is less similar to the sketch of all known data than nearly all held-out
    instances of that class, it is novel. An update feeds the sketches; no training instance is
    kept.

    The paper has no public code: this is our reading of it.

    Args:
        sketch_size: rows of each sketch.
        energy: share of a sketch that its main directions hold, as squares.
        accepted: share of the held-out instances of each class that its threshold accepts.
        calibration_size: labelled instances of each class kept out of the sketches, for its
            threshold.
        memory_size: such instances kept in all.
        seed, features: see :class:`WithVectors`.
        k_max, least_silhouette, cluster_all: see :class:`MarkingLearner`.

    Attributes:
        classes_: the known classes, in order of arrival.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> def along(*axes):
        ...     return np.concatenate([rng.normal(9 * np.eye(20)[axis], 1.0, (40, 20))
        ...                            for axis in axes])
        >>> learner = SENCMaS(energy=0.7).fit(along(0, 1), ["left"] * 40 + ["up"] * 40)
        >>> found = learner.detect(along(3))
        >>> found.n_novel, int(found.is_novel.sum())
        (1, 38)

    Reference: Mu, Zhu, Du, Lim and Zhou, "Streaming classification with emerging new class by
    class matrix sketching", AAAI 2017. ``docs/methods/senc-mas.md`` says what is our reading.
    """

    name: ClassVar[str] = "senc-mas"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **WithVectors.domains,
        **MarkingLearner.domains,
        "sketch_size": validation.whole(4),
        **dict.fromkeys(["energy", "accepted"], validation.between(0.0, 1.0)),
        "calibration_size": validation.whole(1),
    }

    sketch_size: int = 100
    energy: float = 0.95
    accepted: float = 0.95
    calibration_size: int = 20

    _length: float = field(init=False)  # of instances as vectors, root mean square
    _global: Sketch = field(init=False)
    _local: list[Sketch] = field(init=False)  # one for each class
    _calibration: Memory = field(init=False)

    def _fit(self, X: Array, y: Ints) -> None:
        rng = generator(self.seed, "fit")
        train, aside = set_aside(y, self.calibration_size, rng, there=y[:0])
        self._learn_to_see(X[train], y[train])
        self._length = mean_length(self._embed(X[train]))
        rows = self._rows(X[train])
        blank = Sketch.empty(self.sketch_size, rows.shape[1])
        n_classes = int(y.max()) + 1
        self._local = _fed([blank] * n_classes, rows, y[train])
        self._global = blank.fed(rows)
        self._calibration = Memory(X[aside], y[aside]).rebalanced(self.memory_size, rng)

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        rng = generator(self.seed, "update", self._n_updates)
        train, aside = set_aside(y, self.calibration_size, rng, there=self._calibration.y)
        rows = self._rows(X[train])
        blank = Sketch.empty(*self._global.rows.shape)
        arrived = [blank] * (n_classes - len(self._local))
        self._local = _fed(self._local + arrived, rows, y[train])
        self._global = self._global.fed(rows)
        self._calibration = self._calibration.joined(X[aside], y[aside]).rebalanced(
            self.memory_size, rng
        )

    def _rows(self, X: Array) -> Array:
        """Instances as unit vectors (n, d + 1), as sketches take them.

        One more coordinate, the same for all, tells apart what lies on opposite sides.
        """
        z = self._embed(X).astype(np.float64)
        z = np.column_stack([z, np.full(len(z), self._length)])
        return np.asarray(z / np.linalg.norm(z, axis=1, keepdims=True))

    def _predict(self, X: Array) -> Ints:
        rows = self._rows(X)
        similarity = np.stack([similarities(rows, s, self.energy) for s in self._local], axis=1)
        return np.asarray(similarity.argmax(1))

    def _mark(self, X: Array) -> Marks:
        similarity, label = self._similarity(X), self._predict(X)
        return Marks(1 - similarity, similarity < self._thresholds()[label], label, self._embed(X))

    def _similarity(self, X: Array) -> Array:
        return similarities(self._rows(X), self._global, self.energy)

    def _thresholds(self) -> Array:
        """The similarity each class asks for, by its own held-out instances if it has any.

        One for all would fall with every class that is learned: the first labels of a class are
        those of its least similar instances.
        """
        thresholds = np.full(len(self._local), -np.inf)
        if len(self._calibration):
            similarity = self._similarity(self._calibration.X)
            thresholds[:] = np.quantile(similarity, 1 - self.accepted)
            for label in np.unique(self._calibration.y):
                own = similarity[self._calibration.y == label]
                thresholds[label] = np.quantile(own, 1 - self.accepted)
        return thresholds

    def _kept(self) -> tuple[Memory | None, Memory | None]:
        return None, self._calibration

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        sketches = [self._global, *self._local]
        arrays = {f"sketch.{i}": sketch.rows for i, sketch in enumerate(sketches)}
        kept = self._calibration.arrays("calibration")
        plain = {"length": self._length, "n_filled": [s.n_filled for s in sketches]}
        return arrays | kept | self._sight(), plain

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        self._set_sight(self._inner_shape, arrays)
        self._length = plain["length"]
        filled = enumerate(plain["n_filled"])
        sketches = [Sketch(arrays[f"sketch.{i}"], n_filled) for i, n_filled in filled]
        self._global, self._local = sketches[0], sketches[1:]
        self._calibration = Memory.stored(arrays, "calibration")


def _fed(sketches: list[Sketch], rows: Array, y: Ints) -> list[Sketch]:
    """The sketch of each class, after the rows of that class."""
    return [sketch.fed(rows[y == label]) for label, sketch in enumerate(sketches)]


def mean_length(z: Floats) -> float:
    """Root mean square of the lengths of these vectors; 1 if they have none.

    >>> mean_length(np.array([[3.0, 4.0], [0.0, 5.0]]))
    5.0
    """
    return float(np.sqrt(np.square(z, dtype=np.float64).sum(1).mean())) or 1.0


def similarities(rows: Array, sketch: Sketch, energy: float) -> Array:
    """Length of each row's projection on the main directions of a sketch, in float64."""
    return np.asarray(np.linalg.norm(rows @ sketch.leading(energy).T, axis=1))
