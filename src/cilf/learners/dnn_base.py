"""DNN-Base: a classifier that goes on learning from each window, and forgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from cilf.core import validation
from cilf.core.types import Array, Floats
from cilf.learners.marking import MarkingLearner, Marks
from cilf.learners.with_classifier import ClassifierLearner
from cilf.nn.classifier import unsureness
from cilf.nn.network import to_numpy

FORGETS = "it is trained on the labels of one window and keeps nothing of the others"
ONE_CLASS_ALONE = "an output without anchors that sees its own class alone learns to win everywhere"


@dataclass(kw_only=True, repr=False, eq=False)
class DNNBase(ClassifierLearner, MarkingLearner):
    """A classifier, trained on with the labels of each window, and on nothing else.

    What it is less sure of (by its largest softmax probability) than of nearly all held-out
    known instances is novel, and split by k-means. It is the base of the other update methods:
    they differ in what keeps weights from leaving what they have learned.

    Args:
        replay: train on the memory too; without it nothing is kept but held-out instances, which
            are never trained on.
        seed, device, backbone, width, epochs, update_epochs, training: see :class:`WithNetwork`.
        accepted, calibration_size, memory_size: see :class:`ClassifierLearner`.
        k_max, least_silhouette, cluster_all: see :class:`MarkingLearner`.

    Attributes:
        classes_: the known classes, in order of arrival.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in (-8, 0, 8)])
        >>> learner = DNNBase(epochs=5).fit(X[:60], ["a"] * 30 + ["b"] * 30)
        >>> learner.update(X[60:], ["c"] * 30).predict([[8.0, 8.0], [-8.0, -8.0]]).tolist()
        ['c', 'c']

    Reference: the names are those of Yoon et al., "Lifelong learning with dynamically expandable
    networks", ICLR 2018. ``docs/methods/dnn-base.md`` numbers the differences.
    """

    name: ClassVar[str] = "dnn-base"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **ClassifierLearner.domains,
        **MarkingLearner.domains,
        "replay": validation.flag,
    }
    expected_failures: ClassVar[Mapping[str, str]] = {"old_classes_are_kept": FORGETS}

    replay: bool = False

    def _mark(self, X: Array) -> Marks:
        logits, features = self._outputs(X)
        novelty = unsureness(logits)
        marked = novelty > self._most_accepted(self._novelty)
        return Marks(novelty, marked, logits.argmax(1).cpu().numpy(), to_numpy(features))

    def _novelty(self, X: Array) -> Floats:
        return unsureness(self._outputs(X)[0])

    @property
    def _n_kept(self) -> int:
        return self.memory_size if self.replay else 0
