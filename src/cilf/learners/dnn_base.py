"""DNN-Base: a classifier that each update trains on the new labels alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from cilf.core import Detection, validation
from cilf.core.deprecation import accept_old_parameters
from cilf.core.parameters import inherit_descriptions
from cilf.core.types import Array, Ints
from cilf.learners.classifier import ClassifierLearner
from cilf.learners.novel_clustering import NovelClustering
from cilf.nn.classifier import grow_head


@inherit_descriptions
@accept_old_parameters
@dataclass(kw_only=True, repr=False, eq=False)
class DNNBase(ClassifierLearner):
    """A classifier that is trained on the labels of each window, and on nothing else.

    Nothing holds the network to what it has learned, so it forgets. The other update methods differ
    from it in what they hold its weights to. An instance is novel if the largest softmax
    probability is lower than that of nearly all held-out known instances.

    Parameters
    ----------
    replay : bool, default=False
        Whether an update trains on a memory too. Without it only held-out instances are kept.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in (-8, 0, 8)])
    >>> learner = DNNBase(epochs=5).fit(X[:60], ["a"] * 30 + ["b"] * 30)
    >>> learner.update(X[60:], ["c"] * 30).predict([[8.0, 8.0], [-8.0, -8.0]]).tolist()
    ['c', 'c']

    References
    ----------
    Yoon, Yang, Lee and Hwang, "Lifelong learning with dynamically expandable networks", ICLR 2018,
    which gave it its name. ``docs/methods/dnn-base.md`` numbers the differences.
    """

    name: ClassVar[str] = "dnn-base"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **ClassifierLearner.domains,
        "replay": validation.flag,
    }
    expected_failures: ClassVar[Mapping[str, str]] = {
        "old_classes_are_kept": "it is trained on the labels of one window and keeps nothing of "
        "the others"
    }

    replay: bool = False
    clustering: NovelClustering = NovelClustering()

    def _fit(self, X: Array, y: Ints) -> None:
        task = self._begin_fit(X, y)
        self._train(task)
        self._finish(task, replay=self.replay)

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        task = self._begin_update(X, y, n_classes)
        grow_head(task.network, n_classes, self.seed)
        self._train(task)
        self._finish(task, replay=self.replay)

    def _detect(self, X: Array, n_novel: int | None) -> Detection:
        return self._cluster_novel(X, n_novel, self.clustering)
