"""IMM: each window is a task; the weights of all tasks are merged into one network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from cilf.core import Detection, validation
from cilf.core.deprecation import accept_old_parameters
from cilf.core.parameters import Part, inherit_descriptions
from cilf.core.types import Array, Ints
from cilf.learners.base import Arrays
from cilf.learners.classifier import ONE_CLASS_ALONE, ClassifierLearner, Task
from cilf.learners.imm.drop_transfer import drop_transfer
from cilf.learners.imm.moments import MergedTasks, Moments
from cilf.learners.novel_clustering import NovelClustering
from cilf.nn.anchors import Anchors
from cilf.nn.classifier import grow_head
from cilf.nn.fisher import diagonal_fisher
from cilf.nn.network import Network
from cilf.nn.training import Pull

LEAST_PRECISION = 1e-8  # of a weight that does not matter: tasks are then alike to it


@dataclass(frozen=True, kw_only=True, repr=False)
class Transfer(Part):
    """Transfer from the last task, which keeps the weights of a new task near it.

    Parameters
    ----------
    l2 : float, default=0.0001
        Weight of the squared distance from the weights of the last task.
    drop : float, default=0.5
        Probability that an input of a linear layer uses the weights of the last task in a step.
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        "l2": validation.in_range(0.0),
        "drop": validation.in_range(0.0, 0.99),
    }

    l2: float = 1e-4
    drop: float = 0.5

    @contextmanager
    def hold(self, network: Network, earlier: Anchors) -> Iterator[Pull]:
        """Turn on drop transfer inside the block, and give the pull of L2 transfer."""
        with drop_transfer(network, earlier, self.drop):
            yield earlier.make_pull(network, self.l2)


@inherit_descriptions
@accept_old_parameters
@dataclass(kw_only=True, repr=False, eq=False)
class IMMMean(ClassifierLearner):
    """Incremental moment matching by the mean: it predicts with the mean weights of all tasks.

    Each window is a task, trained from the weights of the last one. The merged network only
    predicts; it is not trained on. Running statistics of the network are merged like its weights.

    Parameters
    ----------
    alpha : float or None, default=None
        Share of the newest task in the merged weights; the other tasks share the rest equally. None
        gives all tasks the same share.
    transfer : Transfer, default=Transfer()
        What holds a task near the weights of the last one.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> centres = [[-8.0, 0.0], [8.0, 0.0], [0.0, 8.0]]
    >>> X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in centres])
    >>> learner = IMMMean().fit(X[:60], ["a"] * 30 + ["b"] * 30)
    >>> _ = learner.update(X[30:], ["b"] * 30 + ["c"] * 30)  # no instance of a
    >>> learner.predict(centres).tolist()
    ['a', 'b', 'c']

    References
    ----------
    Lee, Kim, Jun, Ha and Zhang, "Overcoming catastrophic forgetting by incremental moment
    matching", NeurIPS 2017. ``docs/methods/imm-mean.md`` numbers the differences.
    """

    name: ClassVar[str] = "imm-mean"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **ClassifierLearner.domains,
        "replay": validation.flag,
        "alpha": validation.optional(validation.in_range(0.01, 1.0)),
    }
    expected_failures: ClassVar[Mapping[str, str]] = {"old_classes_are_kept": ONE_CLASS_ALONE}

    alpha: float | None = None
    transfer: Transfer = Transfer()
    replay: bool = False
    clustering: NovelClustering = NovelClustering()

    _tasks: MergedTasks = field(init=False)  # ``_network`` has the weights of the newest task

    def _fit(self, X: Array, y: Ints) -> None:
        task = self._begin_fit(X, y)
        self._train(task)
        self._tasks = MergedTasks.merge(task.network, None, Moments.of(task.network), self.alpha)
        self._finish(task, replay=self.replay)

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        task = self._begin_update(X, y, n_classes)
        grow_head(task.network, n_classes, self.seed)
        with self.transfer.hold(task.network, Anchors.of(self._network)) as pull:
            self._train(task, pull)
        self._tasks = self._tasks.add(task.network, Moments.of(task.network), self.alpha)
        self._finish(task, replay=self.replay)

    @property
    def _output_network(self) -> Network:
        return self._tasks.network

    def _detect(self, X: Array, n_novel: int | None) -> Detection:
        return self._cluster_novel(X, n_novel, self.clustering)

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, plain = super()._get_state()
        return arrays | self._tasks.arrays(), plain | {"alpha": self._tasks.alpha}

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        super()._set_state(arrays, plain)
        self._tasks = MergedTasks.restore(arrays, self._network, self._n_updates, plain["alpha"])


@inherit_descriptions
@accept_old_parameters
@dataclass(kw_only=True, repr=False, eq=False)
class IMMMode(ClassifierLearner):
    """Incremental moment matching by the mode: a weight counts by its importance to each task.

    It is :class:`IMMMean` with a weighted mean. The importance is the diagonal of the Fisher
    matrix.

    Parameters
    ----------
    alpha : float or None, default=None
        Share of the newest task in the merged weights; the other tasks share the rest equally. None
        gives all tasks the same share.
    transfer : Transfer, default=Transfer()
        What holds a task near the weights of the last one.
    fisher_size : int or None, default=500
        Largest number of instances of a window that the importance is measured on. None uses all.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> centres = [[-8.0, 0.0], [8.0, 0.0], [0.0, 8.0]]
    >>> X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in centres])
    >>> learner = IMMMode().fit(X[:60], ["a"] * 30 + ["b"] * 30)
    >>> _ = learner.update(X[30:], ["b"] * 30 + ["c"] * 30)  # no instance of a
    >>> learner.predict(centres).tolist()
    ['a', 'b', 'c']

    References
    ----------
    Lee, Kim, Jun, Ha and Zhang, "Overcoming catastrophic forgetting by incremental moment
    matching", NeurIPS 2017. ``docs/methods/imm-mode.md`` numbers the differences.
    """

    name: ClassVar[str] = "imm-mode"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **IMMMean.domains,
        "fisher_size": validation.optional(validation.whole(1)),
    }
    expected_failures: ClassVar[Mapping[str, str]] = {"old_classes_are_kept": ONE_CLASS_ALONE}

    alpha: float | None = None
    transfer: Transfer = Transfer()
    replay: bool = False
    clustering: NovelClustering = NovelClustering()
    fisher_size: int | None = 500

    _tasks: MergedTasks = field(init=False)  # ``_network`` has the weights of the newest task

    def _fit(self, X: Array, y: Ints) -> None:
        task = self._begin_fit(X, y)
        self._train(task)
        self._tasks = MergedTasks.merge(task.network, None, self._moments(task), self.alpha)
        self._finish(task, replay=self.replay)

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        task = self._begin_update(X, y, n_classes)
        grow_head(task.network, n_classes, self.seed)
        with self.transfer.hold(task.network, Anchors.of(self._network)) as pull:
            self._train(task, pull)
        self._tasks = self._tasks.add(task.network, self._moments(task), self.alpha)
        self._finish(task, replay=self.replay)

    def _moments(self, task: Task) -> Moments:
        x, _ = task.tensors()
        rng = task.generator("fisher")
        fisher = diagonal_fisher(task.network, x, generator=rng, max_instances=self.fisher_size)
        return Moments.of(task.network, {k: v + LEAST_PRECISION for k, v in fisher.items()})

    @property
    def _output_network(self) -> Network:
        return self._tasks.network

    def _detect(self, X: Array, n_novel: int | None) -> Detection:
        return self._cluster_novel(X, n_novel, self.clustering)

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, plain = super()._get_state()
        return arrays | self._tasks.arrays(), plain | {"alpha": self._tasks.alpha}

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        super()._set_state(arrays, plain)
        self._tasks = MergedTasks.restore(arrays, self._network, self._n_updates, plain["alpha"])
