"""DNN-EWC: a classifier whose weights are held where they were, as far as they mattered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor

from cilf.core import validation
from cilf.core.random import torch_generator
from cilf.learners.base import Arrays
from cilf.learners.dnn_base import ONE_CLASS_ALONE, DNNBase
from cilf.learners.with_classifier import Made
from cilf.nn.anchors import Anchors
from cilf.nn.fisher import diagonal_fisher
from cilf.nn.memory import Memory
from cilf.nn.network import Network
from cilf.nn.training import Pull, Settings

MODES = ("separate", "online")
LABELS = ("sampled", "true")
ANCHORS = "anchors"  # what their arrays are stored under


@dataclass(kw_only=True, repr=False, eq=False)
class DNNEWC(DNNBase):
    """DNN-Base with elastic weight consolidation: weights that mattered are held where they were.

    How much a weight matters is its entry on the diagonal of the Fisher matrix, of what the network
    was just trained on.

    Args:
        ewc: weight of the penalty, half of the squared distances by importance.
        mode: "separate" holds the weights near those of every earlier window, "online" near the
            last ones, with the importance of all windows.
        decay: in mode "online", what one window leaves of the importance before it.
        fisher_labels: "sampled" from what the network says, or the "true" ones.
        fisher_size: most instances of a window that tell what matters; None takes all.
        fisher_clip: largest importance that one window gives to a weight; None does not clip.
        replay: see :class:`DNNBase`, as for all other parameters.

    Attributes:
        classes_: the known classes, in order of arrival.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in (-8, 0, 8)])
        >>> learner = DNNEWC(epochs=5).fit(X[:60], ["a"] * 30 + ["b"] * 30)
        >>> learner.update(X[60:], ["c"] * 30).predict([[8.0, 8.0]]).tolist()
        ['c']

    Reference: Kirkpatrick et al., "Overcoming catastrophic forgetting in neural networks", PNAS
    2017. ``docs/methods/dnn-ewc.md`` numbers the differences.
    """

    name: ClassVar[str] = "dnn-ewc"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **DNNBase.domains,
        "ewc": validation.between(0.0),
        "mode": validation.among(MODES),
        "decay": validation.between(0.0, 1.0),
        "fisher_labels": validation.among(LABELS),
        "fisher_size": validation.optional(validation.whole(1)),
        "fisher_clip": validation.optional(validation.between(0.0)),
    }
    expected_failures: ClassVar[Mapping[str, str]] = {"old_classes_are_kept": ONE_CLASS_ALONE}

    ewc: float = 1000.0
    mode: str = "separate"
    decay: float = 1.0
    fisher_labels: str = "sampled"
    fisher_size: int | None = 1000
    fisher_clip: float | None = None

    _anchors: Anchors = field(init=False)

    def _train(self, network: Network, labelled: Memory, settings: Settings, made: Made) -> None:
        super()._train(network, labelled, settings, made)
        now = Anchors.of(network, self._importance(network, labelled, made))
        self._anchors = now if made[0] == "fit" else self._accumulated(now)

    def _pull(self, network: Network, made: Made) -> Pull | None:
        if made[0] == "fit":
            return None
        held = self._anchors
        return lambda step: held.pull(network, self.ewc / 2 * step)

    def _importance(self, network: Network, labelled: Memory, made: Made) -> dict[str, Tensor]:
        """Of each weight, for what this network was just trained on."""
        x, labels = self._tensors(labelled, network)
        fisher = diagonal_fisher(
            network, x, labels if self.fisher_labels == "true" else None,
            generator=torch_generator(self.seed, *made, "fisher"), n_most=self.fisher_size,
        )  # fmt: skip
        if self.fisher_clip is None:
            return fisher
        return {name: values.clamp(max=self.fisher_clip) for name, values in fisher.items()}

    def _accumulated(self, now: Anchors) -> Anchors:
        """What to hold the weights to after this window, and how firmly."""
        if self.mode == "separate":
            return self._anchors.joined(now)
        return self._anchors.renewed(now, self.decay)

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, plain = super()._get_state()
        return arrays | self._anchors.arrays(ANCHORS), plain

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        super()._set_state(arrays, plain)
        self._anchors = Anchors.stored(arrays, ANCHORS, self._network.device)
