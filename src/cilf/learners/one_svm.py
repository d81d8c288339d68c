"""One-SVM: one support vector machine around each known class; what lies in none is novel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.svm import OneClassSVM

from cilf.core import validation
from cilf.core.notices import notice
from cilf.core.random import generator
from cilf.core.types import Array, Floats, Ints
from cilf.learners.base import Arrays
from cilf.learners.marking import MarkingLearner, Marks
from cilf.learners.with_vectors import WithVectors
from cilf.nn.memory import Memory


@dataclass(kw_only=True, repr=False, eq=False)
class OneSVM(WithVectors, MarkingLearner):
    """A one-class support vector machine for each known class, and k-means on what none takes.

    The machine with the largest decision value names an instance; where all values are below
    zero, it is novel. An update fits all machines again, to what the memory holds and what is new.

    Args:
        kernel: "rbf", "linear", "poly" (of degree 3) or "sigmoid".
        nu: share of a class that its machine may leave outside, at most.
        gamma: of the kernel; "scale" is 1 / (number of features * variance of the known data),
            "auto" is 1 / number of features.
        class_size: instances of a class that its machine is fitted to, at most; of more, as many
            are drawn.
        seed, features: see :class:`WithVectors`.
        k_max, least_silhouette, cluster_all, memory_size: see :class:`MarkingLearner`.

    Attributes:
        classes_: the known classes, in order of arrival.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> def around(x, y):
        ...     return rng.normal((x, y), 0.5, size=(40, 2))
        >>> X = np.concatenate([around(-3, 0), around(3, 0)])
        >>> learner = OneSVM().fit(X, ["left"] * 40 + ["right"] * 40)
        >>> found = learner.detect(np.concatenate([around(0, 9), around(0, -9)]))
        >>> found.n_novel, int(found.is_novel.sum())
        (2, 80)

    Reference: Schölkopf, Platt, Shawe-Taylor, Smola and Williamson, "Estimating the support of a
    high-dimensional distribution", Neural Computation 2001. ``docs/methods/one-svm.md`` numbers
    the differences.
    """

    name: ClassVar[str] = "one-svm"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **WithVectors.domains,
        **MarkingLearner.domains,
        "kernel": validation.among(["rbf", "linear", "poly", "sigmoid"]),
        "nu": validation.between(1e-6, 0.999),
        "gamma": validation.number_or(["scale", "auto"], least=1e-12),
        "class_size": validation.whole(1),
    }

    kernel: str = "rbf"
    nu: float = 0.1
    gamma: float | str = "scale"
    class_size: int = 2000

    _sample: Memory = field(init=False)  # what the machines are fitted to
    _settings: dict[str, Any] = field(init=False)
    _machines: list[Machine] = field(init=False)

    def _fit(self, X: Array, y: Ints) -> None:
        self._learn_to_see(X, y)
        self._learn(Memory(X, y), generator(self.seed, "fit"))

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        rng = generator(self.seed, "update", self._n_updates)
        memory = self._sample.rebalanced(self.memory_size, rng)
        self._learn(memory.joined(X, y), rng)

    def _learn(self, labelled: Memory, rng: np.random.Generator) -> None:
        sample = labelled.rows(drawn(labelled.y, self.class_size, rng))
        settings = {"kernel": self.kernel, "nu": float(self.nu), "gamma": self.gamma}
        self._surround(sample, settings)

    def _surround(self, sample: Memory, settings: Mapping[str, Any]) -> None:
        """Fit a machine to each class of the sample."""
        z = self._embed(sample.X)
        self._machines = machines(z, sample.y, **settings)
        self._sample, self._settings = sample, dict(settings)

    def _decisions(self, z: Floats) -> tuple[Array, Ints]:
        """The largest decision value of each instance, and the class that gives it."""
        values = np.stack([machine.decisions(z) for machine in self._machines], axis=1)
        classes = np.array([machine.label for machine in self._machines])
        return values.max(1), classes[values.argmax(1)]

    def _predict(self, X: Array) -> Ints:
        return self._decisions(self._embed(X))[1]

    def _mark(self, X: Array) -> Marks:
        z = self._embed(X)
        decision, label = self._decisions(z)
        return Marks(-decision, decision < 0, label, z)

    def _kept(self) -> tuple[Memory | None, Memory | None]:
        return self._sample, None

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        return self._sample.arrays("sample") | self._sight(), {"machines": self._settings}

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        self._set_sight(self._inner_shape, arrays)
        self._surround(Memory.stored(arrays, "sample"), plain["machines"])


@dataclass(frozen=True)
class Machine:
    """The machine around one class."""

    label: int
    svm: OneClassSVM
    mass: float  # that scikit-learn's multipliers sum to

    def decisions(self, z: Floats) -> Array:
        """Decision values, on the scale on which multipliers sum to one, as in the reference.

        So those of classes of different sizes can be compared.
        """
        return np.asarray(self.svm.decision_function(z) / self.mass)


def machines(z: Floats, y: Ints, *, kernel: str, nu: float, gamma: float | str) -> list[Machine]:
    """A machine for each class that is there; they share one kernel."""
    width = kernel_width(z, gamma)
    made = []
    for label in np.unique(y):
        members = z[y == label]
        svm = OneClassSVM(kernel=kernel, nu=nu, gamma=width)
        svm.random_state = 0  # not used, but else drawn from the global generator
        made.append(Machine(int(label), svm.fit(members), nu * len(members)))
    return made


def kernel_width(z: Floats, gamma: float | str) -> float:
    """Gamma as a number: as scikit-learn has it, but of the data of all classes.

    >>> kernel_width(np.array([[0.0, 4.0], [4.0, 0.0]]), "scale")
    0.125
    """
    if not isinstance(gamma, str):
        return float(gamma)
    variance = float(z.var(dtype=np.float64)) if gamma == "scale" else 1.0
    return 1.0 / float(z.shape[1] * (variance or 1.0))


def drawn(y: Ints, most: int, rng: np.random.Generator) -> Ints:
    """Rows of at most this many instances of each class, drawn at random, in order."""
    kept = []
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        if len(rows) > most:
            notice(
                f"one-svm fits machines to class_size={most} instances of each larger class, "
                "drawn at random: raise class_size to use more."
            )
        kept.append(rng.permutation(rows)[:most])
    return np.sort(np.concatenate(kept))
