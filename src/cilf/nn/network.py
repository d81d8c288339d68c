"""An embedding network: the scaling of its inputs, a backbone and a linear head, as one module."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from cilf.core import validation
from cilf.core.random import isolated_torch
from cilf.core.types import Array, Floats
from cilf.errors import BadConfig
from cilf.nn.backbones import Factory, make_backbone
from cilf.nn.image_models import ImageNetwork

FARTHEST = 1e6  # from the mean; squares of larger ones would not be finite
LENGTH_TOLERANCE = 1e-3  # by which the lengths of directions may differ


class Network(nn.Module):
    """A network that standardises raw inputs by the training data and embeds them."""

    mean: Tensor
    std: Tensor

    def __init__(self, backbone: nn.Module, shape: tuple[int, ...], embedding_size: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(_n_features(backbone, shape), embedding_size)
        self.register_buffer("mean", torch.zeros(shape[0]))
        self.register_buffer("std", torch.ones(shape[0]))

    def forward(self, x: Tensor) -> Tensor:
        """(n, c, h, w) or (n, d) raw inputs -> (n, embedding size)."""
        return self.embedding(self.features(x))

    def embedding(self, features: Tensor) -> Tensor:
        """(n, f) features of the backbone -> (n, embedding size)."""
        embedding: Tensor = self.head(features)
        return embedding

    def features(self, x: Tensor) -> Tensor:
        """The backbone's features of raw inputs: (n, f), before the head."""
        features: Tensor = self.backbone(self.scale(x))
        return features

    def embed_scaled(self, scaled: Tensor) -> Tensor:
        """The embedding of inputs that are scaled already."""
        return self.embedding(self.backbone(scaled))

    def scale(self, x: Tensor) -> Tensor:
        """Standardise raw inputs for the backbone."""
        per_channel = (1, -1) + (1,) * (x.ndim - 2)
        scaled = (x.float() - self.mean.view(per_channel)) / self.std.view(per_channel)
        return scaled.clamp(-FARTHEST, FARTHEST)

    def standardise(self, X: Tensor) -> None:
        """Take mean and deviation of each feature (vectors) or channel (images) from ``X``.

        Vectors of length 1, or sqrt(d), are directions: their features share one deviation. A
        pre-trained backbone keeps the scaling it was trained with.
        """
        if isinstance(self.backbone, ImageNetwork):
            return
        axes = (0, *range(2, X.ndim))
        X = X.float()
        std = X.std(dim=axes, correction=0)
        if _are_directions(X):
            std = std.square().mean().sqrt().expand_as(std)
        self.mean.copy_(X.mean(dim=axes))
        self.std.copy_(torch.where(std > 1e-6 * self.mean.abs(), std, 1.0))

    @property
    def device(self) -> torch.device:
        return self.mean.device


def _are_directions(X: Tensor) -> bool:
    """Whether these are vectors of length 1, or sqrt(d)."""
    if X.ndim != 2:
        return False
    lengths = torch.linalg.vector_norm(X, dim=1)
    usual = torch.tensor([1.0, X.shape[1] ** 0.5], device=X.device)
    return bool((lengths[:, None] / usual - 1).abs().amax(0).min() <= LENGTH_TOLERANCE)


def make_network(
    backbone: str | Factory,
    instance_shape: tuple[int, ...],
    *,
    embedding_size: int,
    width: int | None,
    seed: int,
    device: torch.device,
) -> Network:
    """A network for instances of this shape ((d,), (h, w) or (h, w, c)), weights from the seed."""
    shape = tensor_shape(instance_shape)
    with isolated_torch(seed, "weights"):
        network = Network(make_backbone(backbone, shape, width), shape, embedding_size)
    if len(shape) == 3:
        network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network.to(device)


def tensor_shape(instance_shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape torch wants: (d,), or channels first."""
    if len(instance_shape) == 1:
        return instance_shape
    height, width, *channels = instance_shape
    return (channels[0] if channels else 1, height, width)


def as_tensor(X: Array, device: torch.device) -> Tensor:
    """Instances as a tensor on the device; images are channels first, in channels_last memory."""
    tensor = torch.from_numpy(np.require(X, requirements=["C", "W"])).to(device)
    if tensor.ndim == 2:
        return tensor
    if tensor.ndim == 3:
        tensor = tensor.unsqueeze(-1)
    return tensor.permute(0, 3, 1, 2)  # (n, h, w, c) seen as (n, c, h, w): already channels_last


@torch.no_grad()
def _n_features(backbone: nn.Module, shape: tuple[int, ...]) -> int:
    backbone.eval()
    out = backbone(torch.zeros(1, *shape))
    if not isinstance(out, Tensor) or out.ndim != 2:
        found = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
        raise BadConfig(
            f"backbone gives {found} for one instance of shape {shape}: "
            "it has to give a tensor of shape (1, number of features)."
        )
    return out.shape[1]


@torch.no_grad()
def embed(network: Network, X: Tensor, batch_size: int = 512) -> Tensor:
    """The embedding of every instance, with the network in evaluation mode."""
    was_training = network.training
    network.eval()
    embeddings = map_batches(network, X, batch_size)
    network.train(was_training)
    return embeddings


@torch.no_grad()
def backbone_features(network: Network, X: Tensor, batch_size: int = 512) -> Tensor:
    """The backbone's features of every instance, with the network in evaluation mode."""
    was_training = network.training
    network.eval()
    features = map_batches(network.features, X, batch_size)
    network.train(was_training)
    return features


def map_batches(function: Callable[[Tensor], Tensor], X: Tensor, batch_size: int) -> Tensor:
    """The results of a function of a batch, one below the other; no result is held twice.

    >>> map_batches(lambda batch: 2 * batch, torch.arange(5), 2)
    tensor([0, 2, 4, 6, 8])
    """
    first = function(X[:batch_size])
    results = first.new_empty(len(X), *first.shape[1:])
    results[:batch_size] = first
    for start in range(batch_size, len(X), batch_size):
        results[start : start + batch_size] = function(X[start : start + batch_size])
    return results


def to_numpy(tensor: Tensor) -> Floats:
    """A float32 array that shares nothing with the tensor."""
    return np.array(tensor.detach().cpu().numpy(), dtype=np.float32)


def resolve_device(device: str) -> torch.device:
    """ "auto" is the first CUDA device if there is one, else the CPU."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind = str(device).split(":")[0]
    validation.one_of("device", kind, ["auto", "cpu", "cuda", "mps"])
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:  # what torch raises differs by device
        reason = str(error).splitlines()[0].split(". ")[0]
        raise BadConfig(
            f"device {device!r} cannot be used here ({reason}): give 'cpu' or 'auto'."
        ) from error


def is_asynchronous(device: torch.device) -> bool:
    """Whether the host runs ahead of this device, and has to wait to learn a value or a count.

    >>> is_asynchronous(torch.device("cpu")), is_asynchronous(torch.device("cuda"))
    (False, True)
    """
    return device.type != "cpu"
