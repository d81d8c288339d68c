"""DNN-L2: a classifier whose weights are held near those of the last window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from cilf.core import validation
from cilf.learners.dnn_base import ONE_CLASS_ALONE, DNNBase
from cilf.learners.with_classifier import Made
from cilf.nn.anchors import Anchors
from cilf.nn.network import Network
from cilf.nn.training import Pull


@dataclass(kw_only=True, repr=False, eq=False)
class DNNL2(DNNBase):
    """DNN-Base, with a penalty on the squared distance from the weights before the update.

    Args:
        l2: weight of that distance.
        replay: see :class:`DNNBase`, as for all other parameters.

    Attributes:
        classes_: the known classes, in order of arrival.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in (-8, 0, 8)])
        >>> learner = DNNL2(epochs=5).fit(X[:60], ["a"] * 30 + ["b"] * 30)
        >>> learner.update(X[60:], ["c"] * 30).predict([[8.0, 8.0]]).tolist()
        ['c']

    Reference: see :class:`DNNBase`. ``docs/methods/dnn-l2.md`` numbers the differences.
    """

    name: ClassVar[str] = "dnn-l2"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **DNNBase.domains,
        "l2": validation.between(0.0),
    }
    expected_failures: ClassVar[Mapping[str, str]] = {"old_classes_are_kept": ONE_CLASS_ALONE}

    l2: float = 3.0

    def _pull(self, network: Network, made: Made) -> Pull | None:
        if made[0] == "fit":
            return None
        before = Anchors.of(self._network)
        return lambda step: before.pull(network, self.l2 * step)
