"""LACU-SVM: support vector machines that avoid dense regions of the window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels

from cilf.core import Detection, progress, validation
from cilf.core.notices import warn_once
from cilf.core.parameters import inherit_descriptions
from cilf.core.random import generator, torch_generator
from cilf.core.types import Array, Floats, Ints
from cilf.learners.base import Arrays
from cilf.learners.editable import EditableLearner, require_some
from cilf.learners.embedder import Embedder, check_features, find_frozen_network
from cilf.learners.lacu_svm import box_qp
from cilf.learners.lacu_svm.machine import Costs, Programme, plain_machine, signs, window_machine
from cilf.learners.novel_clustering import NovelClustering, ScoredWindow
from cilf.learners.shared_space import SharedSpace
from cilf.nn.memory import Memory

KERNELS = ("linear", "poly", "rbf")


@inherit_descriptions
@dataclass(kw_only=True, repr=False, eq=False)
class LACUSVM(EditableLearner):
    """Support vector machines on labelled data and the window. Instances that all reject are novel.

    Each class has a machine against the rest. Its cost counts labelled instances on the wrong side,
    as in any support vector machine, and window instances near its boundary, on either side.
    Labelled instances of other classes must lie farther from the boundary than those of its own
    class, which moves the boundary close to the class. Where it accepts an instance, the machine
    that is fitted to the labelled data alone decides. ``predict`` uses the latter machines only.

    Parameters
    ----------
    features : str, default="auto"
        Vectors that the machines work on. "raw" is the scaled values. "embed" is the features of a
        network that is trained on the first classes. "efficientnet-lite2", "timm:NAME" and
        "torchvision:NAME" are frozen pre-trained networks for images, "minilm" and
        "sentence:NAME-OR-FOLDER" for texts. "auto" is "minilm" for texts and "raw" otherwise.
    memory_size : int, default=2000
        Largest number of labelled instances in the memory.
    costs : Costs, default=Costs()
        Costs and constraints of a machine.
    iterations : int, default=10
        Largest number of convex programmes that are solved for a machine.
    kernel : {"linear", "poly", "rbf"}, default="rbf"
        Kernel of the machines.
    gamma : float or None, default=None
        Factor in the kernels. None is one over the number of features.
    degree : int, default=3
        Power of the kernel "poly".
    coef0 : float, default=0.0
        Constant of the kernel "poly".
    max_labelled : int, default=500
        Largest number of instances of the memory that the machines of a window are fitted to.
    max_window : int, default=500
        Largest number of window instances that the machines are fitted to. All instances are
        scored.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def around(x, y):
    ...     return rng.normal((x, y), 0.5, size=(40, 2))
    >>> X = np.concatenate([around(-3, 0), around(3, 0), around(0, 3)])
    >>> learner = LACUSVM().fit(X, np.repeat(["left", "right", "top"], 40))
    >>> window = np.concatenate([around(-3, 0), around(3, 0), around(0, 3), around(0, -9)])
    >>> found = learner.detect(window, n_novel=1)
    >>> int(found.is_novel[120:].sum()), int(found.is_novel[:120].sum())
    (40, 0)

    References
    ----------
    Da, Yu and Zhou, "Learning with augmented class by exploiting unlabeled data", AAAI 2014.
    ``docs/methods/lacu-svm.md`` numbers the differences.
    """

    name: ClassVar[str] = "lacu-svm"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        "features": check_features,
        "iterations": validation.whole(0),
        "kernel": validation.among(KERNELS),
        "gamma": validation.optional(validation.in_range(1e-12)),
        "degree": validation.whole(1),
        "coef0": validation.in_range(0.0),
        **dict.fromkeys(["memory_size", "max_labelled"], validation.whole(2)),
        "max_window": validation.whole(1),
    }

    seed: int = 0
    features: str = "auto"
    memory_size: int = 2000
    clustering: NovelClustering = NovelClustering()
    costs: Costs = Costs()
    iterations: int = 10
    kernel: str = "rbf"
    gamma: float | None = None
    degree: int = 3
    coef0: float = 0.0
    max_labelled: int = 500
    max_window: int = 500

    _embedder: Embedder = field(init=False)
    _memory: Memory = field(init=False)
    _kernel_settings: dict[str, Any] = field(init=False)  # fixed by fit
    _weights: Array = field(init=False)  # (memory, n_classes) of the machines of labelled data
    _offsets: Array = field(init=False)  # (n_classes,)

    def _wanted_features(self, X: Array) -> str | None:
        return find_frozen_network(self.features, X)

    def _fit(self, X: Array, y: Ints) -> None:
        self._embedder = Embedder.fit(X, y, features=self.features, seed=self.seed)
        n_features = self._embed(X[:1]).shape[1]
        gamma = 1 / n_features if self.gamma is None else float(self.gamma)
        self._kernel_settings = self._describe_kernel(gamma)
        self._fit_machines(Memory(X, y), int(y.max()) + 1, generator(self.seed, "fit"))

    def _describe_kernel(self, gamma: float) -> dict[str, Any]:
        """The kernel as scikit-learn's arguments."""
        if self.kernel == "linear":  # scikit-learn's has no factor
            return {"metric": "poly", "gamma": gamma, "degree": 1, "coef0": 0.0}
        powers = {"degree": int(self.degree), "coef0": float(self.coef0)}
        return {"metric": self.kernel, "gamma": gamma} | powers

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        rng = generator(self.seed, "update", self._n_updates)
        self._fit_machines(self._memory.combine(X, y), n_classes, rng)

    def _reassign_classes(self, positions: Ints, n_classes: int) -> None:
        self._fit_machines_again(self._memory.reassign(positions), n_classes)

    def _retract(self, X: Array, y: Ints) -> None:
        found = self._memory.find(X, y)
        left = self._memory.without(row for row in found if row is not None)
        require_some(len(left))
        self._fit_machines_again(left, len(self._classes))

    def _fit_machines_again(self, memory: Memory, n_classes: int) -> None:
        self._fit_machines(memory, n_classes, generator(self.seed, "edit", self._n_updates))

    def _fit_machines(self, labelled: Memory, n_classes: int, rng: np.random.Generator) -> None:
        """Fit the machines of ``predict`` to the memory."""
        _report_sample(len(labelled), memory_size=self.memory_size)
        memory = labelled.rebalance(self.memory_size, rng)
        z = self._embed(memory.X)
        kernel = box_qp.Kernel.spread(self._kernel(z, z), np.arange(len(z)))
        machines = [plain_machine(kernel, signs(memory.y, c), self.costs) for c in range(n_classes)]
        self._memory = memory
        self._weights = np.stack([machine.a for machine in machines], axis=1)
        self._offsets = np.array([machine.offset for machine in machines])

    def _detect(self, X: Array, n_novel: int | None) -> Detection:
        z = self._embed(X)
        decide = self._fit_to_window(z)
        decisions = decide(z)
        best = decisions.max(1)
        window = ScoredWindow(-best, best < 0, decisions.argmax(1), z)
        rng = torch_generator(self.seed, "detect", self._n_updates)
        shared = SharedSpace(
            X, self._memories(), self._embedder.learn_views,
            lambda X: decide(self._embed(X)).max(1) < 0, self.seed,
        )  # fmt: skip
        return self.clustering.detect(window, n_novel, self.classes_, rng, shared)

    def _fit_to_window(self, z: Floats) -> Callable[[Floats], Array]:
        """The decision values (n, n_classes) of machines that are fitted to this window.

        Where a machine accepts an instance, the one of labelled data decides.
        """
        labelled, sample = self._sample(z)
        known = self._embed(labelled.X)
        points = np.concatenate([known, sample])
        programme = Programme.of(self._kernel(points, points), len(known))
        machines = []
        for c in range(len(self._classes)):
            progress.report("detect: machines", c, len(self._classes))
            y = signs(labelled.y, c)
            machines.append(window_machine(programme, y, self.costs, self.iterations))
        weights = np.stack([machine.weights for machine in machines], axis=1)
        offsets = np.array([machine.offset for machine in machines])

        def decide(z: Floats) -> Array:
            of_window = self._kernel(z, points) @ weights + offsets
            return np.where(of_window > 0, self._decide_by_labels(z), of_window)

        return decide

    def _decide_by_labels(self, z: Floats) -> Array:
        """Decision values (n, n_classes) of the machines that are fitted to the memory."""
        kernel = self._kernel(z, self._embed(self._memory.X))
        return np.asarray(kernel @ self._weights + self._offsets)

    def _sample(self, window: Array) -> tuple[Memory, Array]:
        """The labelled and the window instances that machines are fitted to."""
        rng = generator(self.seed, "sample", self._n_updates)
        _report_sample(len(self._memory), max_labelled=self.max_labelled)
        _report_sample(len(window), max_window=self.max_window)
        rows = np.sort(rng.permutation(len(window))[: self.max_window])
        return self._memory.rebalance(self.max_labelled, rng), window[rows]

    def _predict(self, X: Array) -> Ints:
        return np.asarray(self._decide_by_labels(self._embed(X)).argmax(1))

    def _embed(self, X: Array) -> Floats:
        return self._embedder.transform(X)

    def _kernel(self, a: Array, b: Array) -> Array:
        # float64, so that an instance gets the same name alone and in a batch
        wide = a.astype(np.float64), b.astype(np.float64)
        kernel = pairwise_kernels(*wide, **self._kernel_settings, filter_params=True)
        return np.asarray(kernel)

    def _memories(self) -> tuple[Memory | None, Memory | None]:
        return self._memory, None

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        machines = {"weights": self._weights, "offsets": self._offsets}
        arrays = machines | self._memory.arrays("memory") | self._embedder.arrays()
        return arrays, {"kernel": self._kernel_settings}

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        self._embedder = Embedder.restore(arrays, self._inner_shape, seed=self.seed)
        self._memory = Memory.restore(arrays, "memory")
        self._kernel_settings = dict(plain["kernel"])
        self._weights, self._offsets = arrays["weights"], arrays["offsets"]


def _report_sample(n: int, **most: int) -> None:
    """Report that the machines are fitted to a sample. The line is the same for all windows."""
    ((parameter, size),) = most.items()
    if n > size:
        warn_once(
            f"lacu-svm fits its machines to {parameter}={size} of the instances, drawn at "
            f"random, since it does not scale: raise {parameter} to use more."
        )
