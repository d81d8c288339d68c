"""ODIN-CNN: a classifier whose softmax, at a high temperature, is lower on novel classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from cilf.core import Detection, validation
from cilf.core.deprecation import accept_old_parameters
from cilf.core.parameters import inherit_descriptions
from cilf.core.types import Array
from cilf.learners.classifier import ClassifierLearner
from cilf.learners.novel_clustering import NovelClustering
from cilf.nn.network import Network, as_tensor, to_numpy

BATCH_SIZE = 512


@inherit_descriptions
@accept_old_parameters
@dataclass(kw_only=True, repr=False, eq=False)
class ODIN(ClassifierLearner):
    """A convolutional classifier with ODIN's score, and k-means on novel instances.

    The score of an instance is its largest softmax probability at a high temperature, after a small
    step of the input that raises it. The step raises it more for known classes. An instance is
    novel if it scores below nearly all held-out known instances.

    Parameters
    ----------
    temperature : float, default=1000.0
        Temperature that the logits are divided by.
    epsilon : float, default=0.0014
        Length of the step, in deviations of the training data for each channel.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in (-6, 6)])
    >>> learner = ODIN(epochs=5).fit(X, ["a"] * 30 + ["b"] * 30)
    >>> learner.predict([[-6.0, -6.0], [6.0, 6.0]]).tolist()
    ['a', 'b']

    References
    ----------
    Liang, Li and Srikant, "Enhancing the reliability of out-of-distribution image detection in
    neural networks", ICLR 2018. ``docs/methods/odin-cnn.md`` numbers the differences.
    """

    name: ClassVar[str] = "odin-cnn"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **ClassifierLearner.domains,
        "temperature": validation.in_range(1e-3),
        "epsilon": validation.in_range(0.0),
    }

    temperature: float = 1000.0
    epsilon: float = 0.0014
    clustering: NovelClustering = NovelClustering()

    @classmethod
    def paper(cls, **changed: Any) -> Self:
        """A learner as the paper compares it: known and novel instances are clustered together."""
        return cls().set_params(**({"clustering__cluster_all": True} | changed))

    def _score_novelty(self, X: Array, logits: Tensor) -> Array:
        scores = [
            odin_scores(self._network, batch, self.temperature, self.epsilon)
            for batch in torch.split(as_tensor(X, self._network.device), BATCH_SIZE)
        ]
        return -to_numpy(torch.cat(scores))

    def _detect(self, X: Array, n_novel: int | None) -> Detection:
        return self._cluster_novel(X, n_novel, self.clustering)


def odin_scores(network: Network, x: Tensor, temperature: float, epsilon: float) -> Tensor:
    """The largest softmax probability at this temperature, after a step that raises it.

    Each value moves by ``epsilon`` deviations against the gradient of the cross entropy with the
    class the network predicts. The network is in evaluation mode.
    """
    nudged = network.scale(x).detach().requires_grad_()
    with torch.enable_grad():
        logits = network.embed_scaled(nudged) / temperature
        (gradient,) = torch.autograd.grad(
            F.cross_entropy(logits, logits.argmax(1), reduction="sum"), nudged
        )
    with torch.no_grad():
        moved = nudged - epsilon * gradient.sign()
        scores: Tensor = F.softmax(network.embed_scaled(moved) / temperature, dim=1).amax(1)
    return scores
