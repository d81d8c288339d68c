"""Joint training on all labelled data so far: the upper bound that forgetting is measured by."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from cilf.core import validation
from cilf.core.parameters import inherit_descriptions
from cilf.core.random import generator
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
    update_epochs : int, default=20
        Number of passes over all data in an update, no fewer than any incremental learner has.
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

    update_epochs: int = 20  # as many as the incremental learner that trains most, cilf-paper
    warm_start: bool = True

    _everything: Memory = field(init=False)

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        rng = generator(self.seed, "update", self._n_updates)
        new, calibration = self._divide(
            X, y, self.calibration_size, rng, memory=self._everything, held_out=self._calibration
        )
        everything = self._everything.combine(new.X, new.y)
        network, epochs = self._start()
        self._train(network, everything, rng, epochs=epochs, even=True)
        self._calibration = calibration
        self._learn_readouts(everything)

    def _train(
        self,
        network: Network,
        known: Memory,
        rng: np.random.Generator,
        *,
        epochs: int,
        even: bool = False,
    ) -> None:
        super()._train(network, known, rng, epochs=epochs, even=even)
        self._everything = known

    def _reassign_classes(self, positions: Ints, n_classes: int) -> None:
        super()._reassign_classes(positions, n_classes)
        self._everything = self._everything.reassign(positions)

    def _retract(self, X: Array, y: Ints) -> None:
        super()._retract(X, y)
        found = self._everything.find(X, y)
        self._everything = self._everything.without(row for row in found if row is not None)

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
