"""DNN-L2: a classifier whose weights stay near their values before an update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from cilf.core import Detection, validation
from cilf.core.deprecation import accept_old_parameters
from cilf.core.parameters import inherit_descriptions
from cilf.core.types import Array, Ints
from cilf.learners.classifier import ONE_CLASS_ALONE, ClassifierLearner
from cilf.learners.novel_clustering import NovelClustering
from cilf.nn.anchors import Anchors
from cilf.nn.classifier import grow_head


@inherit_descriptions
@accept_old_parameters
@dataclass(kw_only=True, repr=False, eq=False)
class DNNL2(ClassifierLearner):
    """DNN-Base with a penalty on the squared distance from the weights before an update.

    Parameters
    ----------
    l2 : float, default=3.0
        Weight of the squared distance.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in (-8, 0, 8)])
    >>> learner = DNNL2(epochs=5).fit(X[:60], ["a"] * 30 + ["b"] * 30)
    >>> learner.update(X[60:], ["c"] * 30).predict([[8.0, 8.0]]).tolist()
    ['c']

    References
    ----------
    Yoon, Yang, Lee and Hwang, "Lifelong learning with dynamically expandable networks", ICLR 2018,
    which gave it its name. ``docs/methods/dnn-l2.md`` numbers the differences.
    """

    name: ClassVar[str] = "dnn-l2"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **ClassifierLearner.domains,
        "replay": validation.flag,
        "l2": validation.in_range(0.0),
    }
    expected_failures: ClassVar[Mapping[str, str]] = {"old_classes_are_kept": ONE_CLASS_ALONE}

    l2: float = 3.0
    replay: bool = False
    clustering: NovelClustering = NovelClustering()

    def _fit(self, X: Array, y: Ints) -> None:
        task = self._begin_fit(X, y)
        self._train(task)
        self._finish(task, replay=self.replay)

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        task = self._begin_update(X, y, n_classes)
        grow_head(task.network, n_classes, self.seed)
        before = Anchors.of(self._network)
        self._train(task, pull=before.make_pull(task.network, self.l2))
        self._finish(task, replay=self.replay)

    def _detect(self, X: Array, n_novel: int | None) -> Detection:
        return self._cluster_novel(X, n_novel, self.clustering)
