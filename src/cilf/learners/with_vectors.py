"""What classic learners share: instances as flat, scaled vectors, or as a network embeds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch

from cilf.core import validation
from cilf.core.random import torch_generator
from cilf.core.types import Array, Floats, Ints
from cilf.learners.base import Arrays
from cilf.nn import pretrained
from cilf.nn.classifier import train_classifier
from cilf.nn.network import (
    FARTHEST,
    Network,
    as_tensor,
    backbone_features,
    make_network,
    resolve_device,
    to_numpy,
)
from cilf.nn.training import Settings

AUTO, RAW, EMBED = "auto", "raw", "embed"
TRAINING = Settings(
    epochs=20, learning_rate=0.01, weight_decay=0.001, clip=1.0, augmentation="shift"
)
BATCH = 64
NETWORK = "embedder."


def known_features(name: str, value: Any) -> None:
    """The check of the parameter ``features``."""
    if not pretrained.is_frozen(value):
        validation.one_of(name, value, [AUTO, RAW, EMBED, *pretrained.FROZEN])


@dataclass(kw_only=True, repr=False, eq=False)
class WithVectors:
    """Sees instances as vectors; beside :class:`Learner`.

    Args:
        seed: decides all that is left to chance.
        features: "raw" values, flat and scaled; "embed": those of a network that is trained to
            tell the first classes apart, and stays as it is; or those of a frozen pre-trained
            one: "efficientnet-lite0", "timm:NAME", "torchvision:NAME" (images), "minilm",
            "sentence:NAME-OR-FOLDER" (texts). "auto" is "minilm" for texts, else "raw".
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {"features": known_features}

    seed: int = 0
    features: str = AUTO

    _mean: Array = field(init=False)
    _std: Array = field(init=False)
    _embedder: Network | None = field(init=False)

    def _wanted_features(self, X: Array) -> str | None:
        if X.ndim > 1 and self.features in (AUTO, RAW, EMBED):
            return None
        if self.features == EMBED:
            return pretrained.chosen(AUTO, X, parameter="features")
        return pretrained.chosen(self.features, X, parameter="features")

    def _learn_to_see(self, X: Array, y: Ints) -> None:
        """Take the scaling from these instances or, for "embed", train a network on them."""
        self._mean, self._std = scaling(X)
        self._embedder = self._trained(X, y) if self.features == EMBED else None

    def _embed(self, X: Array) -> Floats:
        if self._embedder is not None:
            return to_numpy(backbone_features(self._embedder, as_tensor(X, self._embedder.device)))
        scaled = np.clip((X - self._mean) / self._std, -FARTHEST, FARTHEST)
        return scaled.reshape(len(X), -1).astype(np.float32)

    def _trained(self, X: Array, y: Ints) -> Network:
        network = self._make_embedder(X.shape[1:], int(y.max()) + 1)
        x, labels = as_tensor(X, network.device), torch.from_numpy(y).to(network.device)
        network.standardise(x)
        train_classifier(
            network, x, labels, TRAINING, batch_size=BATCH,
            draws=torch_generator(self.seed, "embedder"), seed=self.seed, purpose="fit",
        )  # fmt: skip
        return network

    def _make_embedder(self, shape: tuple[int, ...], n_outputs: int) -> Network:
        backbone = "mlp" if len(shape) == 1 else "convnet"
        return make_network(
            backbone, shape, embedding_size=n_outputs, width=None,
            seed=self.seed, device=resolve_device("auto"),
        )  # fmt: skip

    def _sight(self) -> Arrays:
        """What ``_learn_to_see`` learned, as arrays."""
        scale = {"mean": self._mean, "std": self._std}
        if self._embedder is None:
            return scale
        weights = self._embedder.state_dict().items()
        return scale | {NETWORK + name: value.cpu().numpy() for name, value in weights}

    def _set_sight(self, shape: tuple[int, ...], arrays: Arrays) -> None:
        self._mean, self._std, self._embedder = arrays["mean"], arrays["std"], None
        stored = {k.removeprefix(NETWORK): v for k, v in arrays.items() if k.startswith(NETWORK)}
        if stored:
            self._embedder = self._make_embedder(shape, len(stored["head.bias"]))
            self._embedder.load_state_dict({k: torch.from_numpy(v) for k, v in stored.items()})
            self._embedder.eval()


def scaling(X: Array) -> tuple[Array, Array]:
    """Mean and deviation of each feature (vectors) or channel (images); 1 where constant.

    Not of each pixel: the border of an image hardly varies, and would rule every distance.
    """
    axes = {2: (0,), 3: (0, 1, 2), 4: (0, 1, 2)}[X.ndim]
    mean = np.atleast_1d(X.mean(axes, dtype=np.float64))
    std = np.atleast_1d(X.std(axes, dtype=np.float64))
    return mean, np.where(std > 1e-6 * np.abs(mean), std, 1.0)
