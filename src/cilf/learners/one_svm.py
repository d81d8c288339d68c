"""One-SVM: a one-class support vector machine for each known class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.svm import OneClassSVM

from cilf.core import Detection, validation
from cilf.core.notices import warn_once
from cilf.core.parameters import inherit_descriptions
from cilf.core.random import generator, torch_generator
from cilf.core.types import Array, Floats, Ints
from cilf.learners.base import Arrays
from cilf.learners.editable import EditableLearner, require_some
from cilf.learners.embedder import Embedder, check_features, find_frozen_network
from cilf.learners.novel_clustering import NovelClustering, ScoredWindow
from cilf.learners.shared_space import SharedSpace
from cilf.nn.memory import Memory


@inherit_descriptions
@dataclass(kw_only=True, repr=False, eq=False)
class OneSVM(EditableLearner):
    """A one-class support vector machine for each known class, and k-means on novel instances.

    The machine with the largest decision value names an instance. Where all values are below zero,
    the instance is novel. An update fits all machines again, to the memory and the new instances.

    Parameters
    ----------
    features : str, default="auto"
        Vectors that the machines work on. "raw" is the scaled values. "embed" is the features of a
        network that is trained on the first classes. "efficientnet-lite2", "timm:NAME" and
        "torchvision:NAME" are frozen pre-trained networks for images, "minilm" and
        "sentence:NAME-OR-FOLDER" for texts. "auto" is "minilm" for texts and "raw" otherwise.
    memory_size : int, default=2000
        Largest number of known instances that an update fits the machines to again.
    kernel : {"rbf", "linear", "poly", "sigmoid"}, default="rbf"
        Kernel of the machines. "poly" has degree 3.
    nu : float, default=0.1
        Largest share of a class that its machine leaves outside.
    gamma : float, "scale" or "auto", default="scale"
        Coefficient of the kernel. "scale" is 1 / (number of features * variance of the known data),
        "auto" is 1 / number of features.
    class_size : int, default=2000
        Largest number of instances of a class that its machine is fitted to. A random sample
        stands for a larger class.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def around(x, y):
    ...     return rng.normal((x, y), 0.5, size=(40, 2))
    >>> X = np.concatenate([around(-3, 0), around(3, 0)])
    >>> learner = OneSVM().fit(X, ["left"] * 40 + ["right"] * 40)
    >>> found = learner.detect(np.concatenate([around(0, 9), around(0, -9)]))
    >>> found.n_novel, int(found.is_novel.sum())
    (2, 80)

    References
    ----------
    Schölkopf, Platt, Shawe-Taylor, Smola and Williamson, "Estimating the support of a
    high-dimensional distribution", Neural Computation 2001. ``docs/methods/one-svm.md`` numbers
    the differences.
    """

    name: ClassVar[str] = "one-svm"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        "features": check_features,
        "memory_size": validation.whole(0),
        "kernel": validation.among(["rbf", "linear", "poly", "sigmoid"]),
        "nu": validation.in_range(1e-6, 0.999),
        "gamma": validation.number_or(["scale", "auto"], least=1e-12),
        "class_size": validation.whole(1),
    }

    seed: int = 0
    features: str = "auto"
    memory_size: int = 2000
    clustering: NovelClustering = NovelClustering()
    kernel: str = "rbf"
    nu: float = 0.1
    gamma: float | str = "scale"
    class_size: int = 2000

    _embedder: Embedder = field(init=False)
    _sample: Memory = field(init=False)  # what the machines are fitted to
    _settings: dict[str, Any] = field(init=False)
    _machines: list[Machine] = field(init=False)

    def _wanted_features(self, X: Array) -> str | None:
        return find_frozen_network(self.features, X)

    def _fit(self, X: Array, y: Ints) -> None:
        self._embedder = Embedder.fit(X, y, features=self.features, seed=self.seed)
        self._fit_machines(Memory(X, y), generator(self.seed, "fit"))

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        rng = generator(self.seed, "update", self._n_updates)
        memory = self._sample.rebalance(self.memory_size, rng)
        self._fit_machines(memory.combine(X, y), rng)

    def _fit_machines(self, labelled: Memory, rng: np.random.Generator) -> None:
        sample = labelled.rows(sample_rows(labelled.y, self.class_size, rng))
        settings = {"kernel": self.kernel, "nu": float(self.nu), "gamma": self.gamma}
        self._set_machines(sample, settings)

    def _reassign_classes(self, positions: Ints, n_classes: int) -> None:
        self._set_machines(self._sample.reassign(positions), self._settings)

    def _retract(self, X: Array, y: Ints) -> None:
        found = self._sample.find(X, y)
        left = self._sample.without(row for row in found if row is not None)
        require_some(len(left))
        self._set_machines(left, self._settings)

    def _set_machines(self, sample: Memory, settings: Mapping[str, Any]) -> None:
        self._machines = fit_machines(self._embed(sample.X), sample.y, **settings)
        self._sample, self._settings = sample, dict(settings)

    def _decisions(self, z: Floats) -> tuple[Array, Ints]:
        """The largest decision value of each instance, and the class that gives it."""
        values = np.stack([machine.decisions(z) for machine in self._machines], axis=1)
        classes = np.array([machine.label for machine in self._machines])
        return values.max(1), classes[values.argmax(1)]

    def _predict(self, X: Array) -> Ints:
        return self._decisions(self._embed(X))[1]

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
        decision, label = self._decisions(z)
        return ScoredWindow(-decision, decision < 0, label, z)

    def _embed(self, X: Array) -> Floats:
        return self._embedder.transform(X)

    def _memories(self) -> tuple[Memory | None, Memory | None]:
        return self._sample, None

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays = self._sample.arrays("sample") | self._embedder.arrays()
        return arrays, {"machines": self._settings}

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        self._embedder = Embedder.restore(arrays, self._inner_shape, seed=self.seed)
        self._set_machines(Memory.restore(arrays, "sample"), plain["machines"])


@dataclass(frozen=True)
class Machine:
    """The machine around one class."""

    label: int
    svm: OneClassSVM
    mass: float  # that scikit-learn's multipliers sum to

    def decisions(self, z: Floats) -> Array:
        """Decision values on the scale on which multipliers sum to one, as in the reference.

        On this scale classes of different sizes can be compared.
        """
        return np.asarray(self.svm.decision_function(z) / self.mass)


def fit_machines(
    z: Floats, y: Ints, *, kernel: str, nu: float, gamma: float | str
) -> list[Machine]:
    """A machine for each class that has instances; all machines share one kernel."""
    width = kernel_width(z, gamma)
    machines = []
    for label in np.unique(y):
        members = z[y == label]
        svm = OneClassSVM(kernel=kernel, nu=nu, gamma=width)
        svm.random_state = 0  # not used, but else drawn from the global generator
        machines.append(Machine(int(label), svm.fit(members), nu * len(members)))
    return machines


def kernel_width(z: Floats, gamma: float | str) -> float:
    """Gamma as a number, as scikit-learn computes it, but from the data of all classes.

    >>> kernel_width(np.array([[0.0, 4.0], [4.0, 0.0]]), "scale")
    0.125
    """
    if not isinstance(gamma, str):
        return float(gamma)
    variance = float(z.var(dtype=np.float64)) if gamma == "scale" else 1.0
    return 1.0 / float(z.shape[1] * (variance or 1.0))


def sample_rows(y: Ints, most: int, rng: np.random.Generator) -> Ints:
    """Row numbers of a random sample, in order, with at most this many instances of each class."""
    kept = []
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        if len(rows) > most:
            warn_once(
                f"one-svm fits machines to class_size={most} instances of each larger class, "
                "drawn at random: raise class_size to use more."
            )
        kept.append(rng.permutation(rows)[:most])
    return np.sort(np.concatenate(kept))
