"""DNN-EWC: a classifier whose important weights hardly change in an update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from cilf.core import Detection, validation
from cilf.core.deprecation import accept_old_parameters
from cilf.core.parameters import Part, inherit_descriptions
from cilf.core.types import Array, Ints
from cilf.learners.base import Arrays
from cilf.learners.classifier import ONE_CLASS_ALONE, ClassifierLearner, Task
from cilf.learners.novel_clustering import NovelClustering
from cilf.nn.anchors import Anchors
from cilf.nn.classifier import grow_head
from cilf.nn.fisher import diagonal_fisher

MODES = ("separate", "online")
LABELS = ("sampled", "true")
ANCHORS = "anchors"  # the name of their arrays in a file


@dataclass(frozen=True, kw_only=True, repr=False)
class Consolidation(Part):
    """The penalty of elastic weight consolidation.

    Parameters
    ----------
    weight : float, default=1000.0
        Weight of the penalty, which is half of the squared distances by importance.
    mode : {"separate", "online"}, default="separate"
        Weights that are held. "separate" holds those of every earlier window, "online" the last
        ones, with the importance of all windows.
    decay : float, default=1.0
        Factor of the earlier importance in each window, in mode "online".
    fisher_labels : {"sampled", "true"}, default="sampled"
        Labels that the importance is measured with. "sampled" draws them from the network's own
        probabilities.
    fisher_size : int or None, default=1000
        Largest number of instances that the importance is measured on. None uses all.
    fisher_clip : float or None, default=None
        Largest importance that one window gives to a weight. None does not clip.
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        "weight": validation.in_range(0.0),
        "mode": validation.among(MODES),
        "decay": validation.in_range(0.0, 1.0),
        "fisher_labels": validation.among(LABELS),
        "fisher_size": validation.optional(validation.whole(1)),
        "fisher_clip": validation.optional(validation.in_range(0.0)),
    }

    weight: float = 1000.0
    mode: str = "separate"
    decay: float = 1.0
    fisher_labels: str = "sampled"
    fisher_size: int | None = 1000
    fisher_clip: float | None = None

    def anchor(self, task: Task) -> Anchors:
        """The weights of a trained network, with their importance for its task."""
        x, labels = task.tensors()
        importance = diagonal_fisher(
            task.network, x, labels if self.fisher_labels == "true" else None,
            generator=task.generator("fisher"), max_instances=self.fisher_size,
        )  # fmt: skip
        if self.fisher_clip is not None:
            importance = {k: v.clamp(max=self.fisher_clip) for k, v in importance.items()}
        return Anchors.of(task.network, importance)

    def accumulate(self, earlier: Anchors, newest: Anchors) -> Anchors:
        """The anchors of all windows."""
        if self.mode == "separate":
            return earlier.combine(newest)
        return earlier.renew(newest, self.decay)


@inherit_descriptions
@accept_old_parameters
@dataclass(kw_only=True, repr=False, eq=False)
class DNNEWC(ClassifierLearner):
    """DNN-Base with elastic weight consolidation: important weights are held where they were.

    The importance of a weight is its entry on the diagonal of the Fisher matrix, on the data that
    the network was just trained on.

    Parameters
    ----------
    consolidation : Consolidation, default=Consolidation()
        Penalty on moving important weights.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in (-8, 0, 8)])
    >>> learner = DNNEWC(epochs=5).fit(X[:60], ["a"] * 30 + ["b"] * 30)
    >>> learner.update(X[60:], ["c"] * 30).predict([[8.0, 8.0]]).tolist()
    ['c']

    References
    ----------
    Kirkpatrick et al., "Overcoming catastrophic forgetting in neural networks", PNAS 2017.
    ``docs/methods/dnn-ewc.md`` numbers the differences.
    """

    name: ClassVar[str] = "dnn-ewc"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **ClassifierLearner.domains,
        "replay": validation.flag,
    }
    expected_failures: ClassVar[Mapping[str, str]] = {"old_classes_are_kept": ONE_CLASS_ALONE}

    consolidation: Consolidation = Consolidation()
    replay: bool = False
    clustering: NovelClustering = NovelClustering()

    _anchors: Anchors = field(init=False)

    def _fit(self, X: Array, y: Ints) -> None:
        task = self._begin_fit(X, y)
        self._train(task)
        self._anchors = self.consolidation.anchor(task)
        self._finish(task, replay=self.replay)

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        task = self._begin_update(X, y, n_classes)
        grow_head(task.network, n_classes, self.seed)
        strength = self.consolidation.weight / 2
        self._train(task, pull=self._anchors.make_pull(task.network, strength))
        newest = self.consolidation.anchor(task)
        self._anchors = self.consolidation.accumulate(self._anchors, newest)
        self._finish(task, replay=self.replay)

    def _detect(self, X: Array, n_novel: int | None) -> Detection:
        return self._cluster_novel(X, n_novel, self.clustering)

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, plain = super()._get_state()
        return arrays | self._anchors.arrays(ANCHORS), plain

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        super()._set_state(arrays, plain)
        self._anchors = Anchors.restore(arrays, ANCHORS, self._network.device)
