"""IMM: each window is a task; the weights of all tasks are merged into one network."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from cilf.core import validation
from cilf.core.random import torch_generator
from cilf.core.types import Array
from cilf.learners.base import Arrays
from cilf.learners.dnn_l2 import DNNL2
from cilf.learners.imm.drop_transfer import drop_transfer
from cilf.learners.imm.moments import Moments, mixed
from cilf.learners.with_classifier import Made
from cilf.nn import training
from cilf.nn.anchors import Anchors
from cilf.nn.fisher import diagonal_fisher
from cilf.nn.memory import Memory
from cilf.nn.network import Network, as_tensor, backbone_features

LEAST_PRECISION = 1e-8  # of a weight that does not matter: tasks are then alike to it


@dataclass(kw_only=True, repr=False, eq=False)
class IMMMean(DNNL2):
    """Incremental moment matching by the mean: it answers with the mean weights of all tasks.

    Each window is a task, trained from the weights of the last one, near which L2 transfer and
    drop transfer hold it. What is merged only answers; it is not trained on. Running statistics of
    the network are merged like its weights.

    Args:
        alpha: share of the newest task in the merged weights, the others share the rest alike;
            None gives all tasks the same.
        l2: weight of the squared distance from the weights of the last task.
        drop: probability that an input of a linear layer takes the last task's weights in a step.
        replay: see :class:`DNNBase`, as for all other parameters.

    Attributes:
        classes_: the known classes, in order of arrival.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> centres = [[-8.0, 0.0], [8.0, 0.0], [0.0, 8.0]]
        >>> X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in centres])
        >>> learner = IMMMean().fit(X[:60], ["a"] * 30 + ["b"] * 30)
        >>> _ = learner.update(X[30:], ["b"] * 30 + ["c"] * 30)  # no instance of a
        >>> learner.predict(centres).tolist()
        ['a', 'b', 'c']

    Reference: Lee, Kim, Jun, Ha and Zhang, "Overcoming catastrophic forgetting by incremental
    moment matching", NeurIPS 2017. ``docs/methods/imm-mean.md`` numbers the differences.
    """

    name: ClassVar[str] = "imm-mean"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **DNNL2.domains,
        "alpha": validation.optional(validation.between(0.01, 1.0)),
        "drop": validation.between(0.0, 0.99),
    }

    alpha: float | None = None
    l2: float = 1e-4
    drop: float = 0.5

    # ``_network`` has the weights of the newest task
    _earlier: Moments | None = field(init=False)  # of all tasks before
    _newest: Moments = field(init=False)
    _merged: Network = field(init=False)
    _merged_with: float | None = field(init=False)  # parameters may change after fitting

    def _train(
        self, network: Network, labelled: Memory, settings: training.Settings, made: Made
    ) -> None:
        first = made[0] == "fit"
        if first:
            super()._train(network, labelled, settings, made)
        else:
            with drop_transfer(network, Anchors.of(self._network), self.drop):
                super()._train(network, labelled, settings, made)
        newest = Moments.of(network, self._precision(network, labelled, made))
        earlier = None if first else _joined(self._earlier, self._newest)
        self._keep(network, earlier, newest, self.alpha)

    def _precision(
        self, network: Network, labelled: Memory, made: Made
    ) -> dict[str, Tensor] | None:
        """How sure the newest task is of each weight; None: of all alike."""
        return None

    def _keep(
        self, network: Network, earlier: Moments | None, newest: Moments, alpha: float | None
    ) -> None:
        """Take these moments; what is merged from them answers from now on."""
        merged = copy.deepcopy(network)
        weights = mixed(earlier, newest, alpha).merged()
        merged.load_state_dict(network.state_dict() | weights)
        self._earlier, self._newest, self._merged = earlier, newest, merged
        self._merged_with = alpha

    def _outputs(self, X: Array) -> tuple[Tensor, Tensor]:
        features = backbone_features(self._merged, as_tensor(X, self._merged.device))
        with torch.no_grad():
            return self._merged.embedding(features), features

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, plain = super()._get_state()
        arrays |= self._newest.arrays("newest")
        if self._earlier is not None:
            arrays |= self._earlier.arrays("earlier")
        return arrays, plain | {"alpha": self._merged_with}

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        super()._set_state(arrays, plain)
        n_earlier, device = self._n_updates, self._network.device
        earlier = Moments.stored(arrays, "earlier", n_earlier, device) if n_earlier else None
        newest = Moments.stored(arrays, "newest", 1, device)
        self._keep(self._network, earlier, newest, plain["alpha"])


@dataclass(kw_only=True, repr=False, eq=False)
class IMMMode(IMMMean):
    """Incremental moment matching by the mode: a weight counts by how much it mattered to a task.

    Args:
        fisher_size: most instances of a window that this is measured on; None takes all.
        alpha, l2, drop: see :class:`IMMMean`.
        replay: see :class:`DNNBase`, as for all other parameters.

    Attributes:
        classes_: the known classes, in order of arrival.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> centres = [[-8.0, 0.0], [8.0, 0.0], [0.0, 8.0]]
        >>> X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in centres])
        >>> learner = IMMMode().fit(X[:60], ["a"] * 30 + ["b"] * 30)
        >>> _ = learner.update(X[30:], ["b"] * 30 + ["c"] * 30)  # no instance of a
        >>> learner.predict(centres).tolist()
        ['a', 'b', 'c']

    Reference: see :class:`IMMMean`. ``docs/methods/imm-mode.md`` numbers the differences.
    """

    name: ClassVar[str] = "imm-mode"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **IMMMean.domains,
        "fisher_size": validation.optional(validation.whole(1)),
    }

    fisher_size: int | None = 500

    def _precision(
        self, network: Network, labelled: Memory, made: Made
    ) -> dict[str, Tensor] | None:
        x, _ = self._tensors(labelled, network)
        draws = torch_generator(self.seed, *made, "fisher")
        fisher = diagonal_fisher(network, x, generator=draws, n_most=self.fisher_size)
        return {name: values + LEAST_PRECISION for name, values in fisher.items()}


def _joined(earlier: Moments | None, newest: Moments) -> Moments:
    return newest if earlier is None else earlier.joined(newest)
