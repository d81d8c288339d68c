"""Instances as vectors for classic methods: scaled values, or the features of a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

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
from cilf.nn.persistence import load_weights, weight_arrays
from cilf.nn.training import Settings
from cilf.nn.views import Views, learn_patches, learn_views, view_inputs

AUTO, RAW, EMBED = "auto", "raw", "embed"
TRAINING = Settings(
    epochs=20, learning_rate=0.01, weight_decay=0.001, clip=1.0, augmentation="shift"
)
BATCH_SIZE = 64
NETWORK = "embedder"  # the name of its weights in a file


def check_features(name: str, value: Any) -> None:
    """Refuse a value that the parameter ``features`` does not take."""
    if not pretrained.is_frozen(value):
        validation.one_of(name, value, [AUTO, RAW, EMBED, *pretrained.FROZEN])


def find_frozen_network(features: str, X: Array) -> str | None:
    """The pre-trained network that the parameter ``features`` names for these instances, if any."""
    if X.ndim > 1 and features in (AUTO, RAW, EMBED):
        return None
    return pretrained.choose_network(
        AUTO if features == EMBED else features, X, parameter="features"
    )


@dataclass(frozen=True)
class Embedder:
    """The map from instances to vectors; it stays as it was first fitted."""

    mean: Array
    std: Array
    network: Network | None  # None: the vectors are the scaled values

    @classmethod
    def fit(cls, X: Array, y: Ints, *, features: str, seed: int) -> Self:
        """Take the scaling from these instances; for "embed", train a network to classify them."""
        network = _train_network(X, y, seed) if features == EMBED else None
        return cls(*measure_scale(X), network)

    def transform(self, X: Array) -> Floats:
        """Instances as vectors (n, d)."""
        if self.network is not None:
            return to_numpy(backbone_features(self.network, as_tensor(X, self.network.device)))
        scaled = np.clip((X - self.mean) / self.std, -FARTHEST, FARTHEST)
        return scaled.reshape(len(X), -1).astype(np.float32)

    def learn_views(self, X: Array, generator: torch.Generator) -> Views:
        """The views by the network, or the inputs alone, with the typical patches of these."""
        if self.network is not None:
            return learn_views(self.network, X, generator, inputs_only=False)
        cpu = torch.device("cpu")
        patches = learn_patches(self._scale, as_tensor(X, cpu), generator)
        return lambda X: [view_inputs(self._scale, patches, as_tensor(X, cpu))]

    def _scale(self, x: Tensor) -> Tensor:
        """Standardise raw inputs, channels first."""
        mean, std = (
            torch.from_numpy(each).view(1, -1, *[1] * (x.ndim - 2))
            for each in (self.mean, self.std)
        )
        return ((x - mean) / std).clamp(-FARTHEST, FARTHEST).float()

    def arrays(self) -> Arrays:
        """The embedder as it is stored."""
        weights = {} if self.network is None else weight_arrays(self.network, NETWORK)
        return {"mean": self.mean, "std": self.std} | weights

    @classmethod
    def restore(cls, arrays: Arrays, shape: tuple[int, ...], *, seed: int) -> Self:
        """The embedder that ``arrays`` gave, of instances of this shape."""
        network = None
        if f"{NETWORK}.head.bias" in arrays:
            network = _make_network(shape, len(arrays[f"{NETWORK}.head.bias"]), seed)
            load_weights(network, arrays, NETWORK)
        return cls(arrays["mean"], arrays["std"], network)


def measure_scale(X: Array) -> tuple[Array, Array]:
    """Mean and deviation of each feature (vectors) or channel (images); 1 where constant.

    The scale is not measured for each pixel: the border of an image hardly varies, and would
    dominate every distance.
    """
    axes = {2: (0,), 3: (0, 1, 2), 4: (0, 1, 2)}[X.ndim]
    mean = np.atleast_1d(X.mean(axes, dtype=np.float64))
    std = np.atleast_1d(X.std(axes, dtype=np.float64))
    return mean, np.where(std > 1e-6 * np.abs(mean), std, 1.0)


def _train_network(X: Array, y: Ints, seed: int) -> Network:
    network = _make_network(X.shape[1:], int(y.max()) + 1, seed)
    x, labels = as_tensor(X, network.device), torch.from_numpy(y).to(network.device)
    network.standardise(x)
    train_classifier(
        network, x, labels, TRAINING, batch_size=BATCH_SIZE,
        generator=torch_generator(seed, "embedder"), seed=seed, purpose="fit",
    )  # fmt: skip
    return network


def _make_network(shape: tuple[int, ...], n_outputs: int, seed: int) -> Network:
    backbone = "mlp" if len(shape) == 1 else "convnet"
    return make_network(
        backbone, shape, embedding_size=n_outputs, width=None,
        seed=seed, device=resolve_device("auto"),
    )  # fmt: skip
