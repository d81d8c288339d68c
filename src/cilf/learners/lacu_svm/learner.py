"""LACU-SVM: one machine a class, drawn through the gaps of the window and close to its class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels

from cilf.core import progress, validation
from cilf.core.notices import notice
from cilf.core.random import generator
from cilf.core.types import Array, Ints
from cilf.learners.base import Arrays
from cilf.learners.lacu_svm import box_qp
from cilf.learners.lacu_svm.machine import Costs, Programme, plain_machine, signs, window_machine
from cilf.learners.marking import MarkingLearner, Marks
from cilf.learners.with_vectors import WithVectors
from cilf.nn.memory import Memory

KERNELS = ("linear", "poly", "rbf")


@dataclass(kw_only=True, repr=False, eq=False)
class LACUSVM(WithVectors, MarkingLearner):
    """Support vector machines of labelled data and the window; what all of them refuse is novel.

    Each class has a machine against the rest. It pays for labelled instances on the wrong side
    as any support vector machine does, and for window instances near its boundary, whichever side
    they are on. Labelled instances of other classes must lie farther from the boundary than those
    of its own, which draws it close around the class. ``predict`` uses machines of the labelled
    data alone.

    Args:
        C: cost of labelled instances on the wrong side.
        C_window: cost of window instances near the boundary; None is C, times the labelled
            instances, over those of the window.
        ramp: the margin of an instance at which its cost stops growing.
        eta: a window's mean decision may lie below that of labelled data, by this factor.
        rho_margin: how much farther off labelled negatives lie than the nearest positive.
        iterations: convex programmes solved for each machine, at most.
        kernel: "linear", "poly" or "rbf".
        gamma: factor in the kernels "poly" and "rbf"; None is one over the number of features.
        degree, coef0: power and constant of the kernel "poly".
        max_labelled: remembered instances that a window's machines are trained on.
        max_window: instances of the window that they are trained on; all of it is judged.
        tolerance: by how much optimality conditions may be missed.
        seed, features: see :class:`WithVectors`.
        k_max, least_silhouette, cluster_all, memory_size: see :class:`MarkingLearner`.

    Attributes:
        classes_: the known classes, in order of arrival.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> def around(x, y):
        ...     return rng.normal((x, y), 0.5, size=(40, 2))
        >>> X = np.concatenate([around(-3, 0), around(3, 0), around(0, 3)])
        >>> learner = LACUSVM().fit(X, np.repeat(["left", "right", "top"], 40))
        >>> window = np.concatenate([around(-3, 0), around(3, 0), around(0, 3), around(0, -9)])
        >>> found = learner.detect(window, n_novel=1)
        >>> int(found.is_novel[120:].sum()), int(found.is_novel[:120].sum())
        (40, 0)

    Reference: Da, Yu and Zhou, "Learning with augmented class by exploiting unlabeled data",
    AAAI 2014. ``docs/methods/lacu-svm.md`` numbers the differences.
    """

    name: ClassVar[str] = "lacu-svm"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **WithVectors.domains,
        **MarkingLearner.domains,
        **dict.fromkeys(["C", "tolerance"], validation.between(1e-9)),
        "C_window": validation.optional(validation.between(0.0)),
        "ramp": validation.between(-1.0, 0.0),
        "eta": validation.between(1.0),
        "rho_margin": validation.between(0.0),
        "iterations": validation.whole(0),
        "kernel": validation.among(KERNELS),
        "gamma": validation.optional(validation.between(1e-12)),
        "degree": validation.whole(1),
        "coef0": validation.between(0.0),
        **dict.fromkeys(["memory_size", "max_labelled"], validation.whole(2)),
        "max_window": validation.whole(1),
    }

    C: float = 1.0
    C_window: float | None = None
    ramp: float = -0.3
    eta: float = 1.3
    rho_margin: float = 0.1
    iterations: int = 10
    kernel: str = "rbf"
    gamma: float | None = None
    degree: int = 3
    coef0: float = 0.0
    max_labelled: int = 500
    max_window: int = 500
    tolerance: float = 1e-3

    _memory: Memory = field(init=False)
    _measure: dict[str, Any] = field(init=False)
    _weights: Array = field(init=False)  # (memory, n_classes) of the machines of labelled data
    _offsets: Array = field(init=False)  # (n_classes,)

    def _fit(self, X: Array, y: Ints) -> None:
        self._learn_to_see(X, y)
        self._measure = self._chosen_measure(n_features=self._embed(X[:1]).shape[1])
        self._learn(Memory(X, y), int(y.max()) + 1, generator(self.seed, "fit"))

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        rng = generator(self.seed, "update", self._n_updates)
        self._learn(self._memory.joined(X, y), n_classes, rng)

    def _learn(self, labelled: Memory, n_classes: int, rng: np.random.Generator) -> None:
        """Machines of labelled data alone, as much of it as is remembered."""
        _tell_left_out(len(labelled), memory_size=self.memory_size)
        memory = labelled.rebalanced(self.memory_size, rng)
        z = self._embed(memory.X)
        kernel = box_qp.Kernel.spread(self._kernel(z, z), np.arange(len(z)))
        machines = [
            plain_machine(kernel, signs(memory.y, c), self._costs) for c in range(n_classes)
        ]
        self._memory = memory
        self._weights = np.stack([machine.a for machine in machines], axis=1)
        self._offsets = np.array([machine.offset for machine in machines])

    def _mark(self, X: Array) -> Marks:
        z = self._embed(X)
        labelled, window = self._sampled(z)
        known = self._embed(labelled.X)
        points = np.concatenate([known, window])
        programme = Programme.of(self._kernel(points, points), len(known))
        machines = []
        for c in range(len(self._classes)):
            progress.report("detect: machines", c, len(self._classes))
            y = signs(labelled.y, c)
            machines.append(window_machine(programme, y, self._costs, self.iterations))
        weights = np.stack([machine.weights for machine in machines], axis=1)
        offsets = np.array([machine.offset for machine in machines])
        decisions = self._kernel(z, points) @ weights + offsets  # (n, n_classes)
        best = decisions.max(1)
        return Marks(-best, best < 0, decisions.argmax(1), z)

    def _sampled(self, window: Array) -> tuple[Memory, Array]:
        """The labelled and the window instances that machines are trained on."""
        rng = generator(self.seed, "sample", self._n_updates)
        _tell_left_out(len(self._memory), max_labelled=self.max_labelled)
        _tell_left_out(len(window), max_window=self.max_window)
        rows = np.sort(rng.permutation(len(window))[: self.max_window])
        return self._memory.rebalanced(self.max_labelled, rng), window[rows]

    def _predict(self, X: Array) -> Ints:
        decisions = self._kernel(self._embed(X), self._embed(self._memory.X)) @ self._weights
        return np.asarray((decisions + self._offsets).argmax(1))

    @property
    def _costs(self) -> Costs:
        return Costs(self.C, self.C_window, self.ramp, self.eta, self.rho_margin, self.tolerance)

    def _chosen_measure(self, n_features: int) -> dict[str, Any]:
        """The kernel, fixed by fit: the machines of labelled data mean nothing with another."""
        gamma = 1 / n_features if self.gamma is None else float(self.gamma)
        chosen = {"metric": self.kernel, "gamma": gamma}
        return chosen | {"degree": int(self.degree), "coef0": float(self.coef0)}

    def _kernel(self, a: Array, b: Array) -> Array:
        # float64, so that an instance gets the same name alone and in a batch
        wide = a.astype(np.float64), b.astype(np.float64)
        return np.asarray(pairwise_kernels(*wide, **self._measure, filter_params=True))

    def _kept(self) -> tuple[Memory | None, Memory | None]:
        return self._memory, None

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        machines = {"weights": self._weights, "offsets": self._offsets}
        return machines | self._memory.arrays("memory") | self._sight(), {"kernel": self._measure}

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        self._set_sight(self._inner_shape, arrays)
        self._memory, self._measure = Memory.stored(arrays, "memory"), dict(plain["kernel"])
        self._weights, self._offsets = arrays["weights"], arrays["offsets"]


def _tell_left_out(n: int, **most: int) -> None:
    """Without numbers of the window, so that the line is said once."""
    ((parameter, size),) = most.items()
    if n > size:
        notice(
            f"lacu-svm trains its machines on {parameter}={size} of the instances, drawn at "
            f"random, since it does not scale: raise {parameter} to use more."
        )
