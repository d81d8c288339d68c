"""ODIN-CNN: a classifier whose softmax, tempered and on nudged inputs, is low on novel classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from cilf.core import validation
from cilf.core.types import Array, Floats
from cilf.learners.marking import MarkingLearner, Marks
from cilf.learners.with_classifier import ClassifierLearner
from cilf.nn.network import Network, as_tensor, to_numpy

BATCH = 512


@dataclass(kw_only=True, repr=False, eq=False)
class ODIN(ClassifierLearner, MarkingLearner):
    """A convolutional classifier with ODIN's score, and k-means on what it marks.

    The score of an instance is its largest softmax probability at a high temperature, after a
    small step of the input that raises it: the step raises it more for known classes. Instances
    that score below nearly all held-out known ones are novel.

    Args:
        temperature: that logits are divided by.
        epsilon: length of the step, in deviations of the training data for each channel.
        seed, device, backbone, width, epochs, update_epochs, training: see :class:`WithNetwork`.
        accepted, calibration_size, memory_size: see :class:`ClassifierLearner`.
        k_max, least_silhouette, cluster_all: see :class:`MarkingLearner`.

    Attributes:
        classes_: the known classes, in order of arrival.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in (-6, 6)])
        >>> learner = ODIN(epochs=5).fit(X, ["a"] * 30 + ["b"] * 30)
        >>> learner.predict([[-6.0, -6.0], [6.0, 6.0]]).tolist()
        ['a', 'b']

    Reference: Liang, Li and Srikant, "Enhancing the reliability of out-of-distribution image
    detection in neural networks", ICLR 2018. ``docs/methods/odin-cnn.md`` numbers the differences.
    """

    name: ClassVar[str] = "odin-cnn"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **ClassifierLearner.domains,
        **MarkingLearner.domains,
        "temperature": validation.between(1e-3),
        "epsilon": validation.between(0.0),
    }

    temperature: float = 1000.0
    epsilon: float = 0.0014

    @classmethod
    def paper(cls, **changed: Any) -> Self:
        """As the paper compares it: known and novel instances are clustered together."""
        return cls().set_params(**({"cluster_all": True} | changed))

    def _mark(self, X: Array) -> Marks:
        logits, features = self._outputs(X)
        novelty = self._novelty(X)
        marked = novelty > self._most_accepted(self._novelty)
        return Marks(novelty, marked, logits.argmax(1).cpu().numpy(), to_numpy(features))

    def _novelty(self, X: Array) -> Floats:
        scores = [
            odin_scores(self._network, batch, self.temperature, self.epsilon)
            for batch in torch.split(as_tensor(X, self._network.device), BATCH)
        ]
        return -to_numpy(torch.cat(scores))


def odin_scores(network: Network, x: Tensor, temperature: float, epsilon: float) -> Tensor:
    """The largest softmax probability at this temperature, of inputs moved to raise it.

    Each value moves by ``epsilon`` deviations against the gradient of the cross entropy with the
    class the network predicts. The network is in evaluation mode.
    """
    nudged = network.scaled(x).detach().requires_grad_()
    with torch.enable_grad():
        logits = network.of_scaled(nudged) / temperature
        (gradient,) = torch.autograd.grad(
            F.cross_entropy(logits, logits.argmax(1), reduction="sum"), nudged
        )
    with torch.no_grad():
        moved = nudged - epsilon * gradient.sign()
        scores: Tensor = F.softmax(network.of_scaled(moved) / temperature, dim=1).amax(1)
    return scores
