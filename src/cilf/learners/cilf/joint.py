"""Joint training on all labelled data so far: the upper bound that forgetting is measured by."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

from cilf.core.types import Array, Ints
from cilf.learners.base import Arrays
from cilf.learners.cilf.learner import CILF
from cilf.nn.memory import Memory


class Joint(CILF):
    """CILF's network, trained on all labels of all windows so far: the upper bound A*.

    An evaluation gives it the true labels of *all* instances of a window, not only of the novel
    ones (``takes_all_labels``). It keeps them all, so that it does not suit a stream. An update
    continues the training on everything, with as many instances of each class, for
    ``update_epochs`` more epochs. So by any window it has trained as many epochs as an incremental
    learner, and each of them saw all data. Detection and all parameters are those of
    :class:`CILF`. ``memory_size`` bounds what detection uses.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in (0, 8, 16)])
        >>> learner = Joint(epochs=5).fit(X[:60], ["a"] * 30 + ["b"] * 30)
        >>> learner.update(X[60:], ["c"] * 30).predict([[16.0, 16.0]]).tolist()
        ['c']

    Differences from the paper: the paper says only that A* is the optimal accuracy with the entire
    data. Here it is Algorithm 1 on all labels. ``docs/methods/joint.md`` has the measurements.
    """

    name: ClassVar[str] = "joint"
    takes_all_labels: ClassVar[bool] = True
    expected_failures: ClassVar[Mapping[str, str]] = {
        "memory_is_bounded": "it keeps every labelled instance: that is what makes it the bound"
    }

    _everything: Memory

    def _fit(self, X: Array, y: Ints) -> None:
        super()._fit(X, y)
        self._everything = Memory(X.copy(), y)

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        everything = self._everything.combine(X, y)
        network = copy.deepcopy(self._network)
        self._train(network, everything.X, everything.y, epochs=self.update_epochs, even=True)
        self._everything = everything

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, plain = super()._get_state()
        everything = {"everything.X": self._everything.X, "everything.y": self._everything.y}
        return arrays | everything, plain

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        super()._set_state(arrays, plain)
        self._everything = Memory(arrays["everything.X"], arrays["everything.y"])
