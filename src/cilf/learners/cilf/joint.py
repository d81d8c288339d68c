"""Joint training on all labelled data so far: the upper bound that forgetting is measured by."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from cilf.core import validation
from cilf.core.parameters import inherit_descriptions
from cilf.core.types import Array, Ints
from cilf.learners.base import Arrays
from cilf.learners.cilf.learner import CILF
from cilf.nn.memory import Memory
from cilf.nn.network import Network


@inherit_descriptions
@dataclass(kw_only=True, repr=False, eq=False)
class Joint(CILF):
    """CILF's network, trained on all labels of all windows so far: the upper bound A*.

    An evaluation gives it the true labels of *all* instances of a window, not only of the novel
    ones (``takes_all_labels``). It keeps them all, so that it does not suit a stream. An update
    trains on everything, with as many instances of each class. By any window it has trained at
    least as many epochs as an incremental learner has in all. Detection and the other parameters
    are those of :class:`CILF`. ``memory_size`` bounds what detection uses.

    Parameters
    ----------
    warm_start : bool, default=True
        Whether an update continues the training of the network for ``update_epochs``. Otherwise it
        trains a new one for as many epochs as all trainings so far together, which takes a
        multiple of the time and ends higher on hard data.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in (0, 8, 16)])
    >>> learner = Joint(epochs=5).fit(X[:60], ["a"] * 30 + ["b"] * 30)
    >>> learner.update(X[60:], ["c"] * 30).predict([[16.0, 16.0]]).tolist()
    ['c']

    References
    ----------
    The paper says only that A* is the optimal accuracy with the entire data.
    ``docs/methods/joint.md`` says how it is read here.
    """

    name: ClassVar[str] = "joint"
    takes_all_labels: ClassVar[bool] = True
    expected_failures: ClassVar[Mapping[str, str]] = {
        "memory_is_bounded": "it keeps every labelled instance: that is what makes it the bound"
    }

    domains: ClassVar[Mapping[str, validation.Check]] = {
        **CILF.domains,
        "warm_start": validation.flag,
    }

    warm_start: bool = True

    _everything: Memory = field(init=False)

    def _fit(self, X: Array, y: Ints) -> None:
        super()._fit(X, y)
        self._everything = Memory(X.copy(), y)

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        everything = self._everything.combine(X, y)
        network, epochs = self._start()
        self._train(network, everything.X, everything.y, epochs=epochs, even=True)
        self._everything = everything

    def _start(self) -> tuple[Network, int]:
        """The network that an update starts from, and the epochs that it trains."""
        if self.warm_start:
            return copy.deepcopy(self._network), self.update_epochs
        n_updates = self._n_updates + 1
        network = self._make_network(self._inner_shape, self._architecture)
        return network, self.epochs + n_updates * self.update_epochs

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, plain = super()._get_state()
        everything = {"everything.X": self._everything.X, "everything.y": self._everything.y}
        return arrays | everything, plain

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        super()._set_state(arrays, plain)
        self._everything = Memory(arrays["everything.X"], arrays["everything.y"])
