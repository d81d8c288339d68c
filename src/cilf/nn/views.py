"""The views of an instance: the output of a network, its features, and the inputs.

An embedding that is trained on known classes loses what tells novel ones apart. The features one
layer earlier keep some of it, and the inputs keep all.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from cilf.core.types import Array
from cilf.nn.network import Network, as_tensor, backbone_features, map_batches
from cilf.nn.patches import PatchDictionary

VIEWS = ["embedding", "features", "inputs"]
N_PATCHED_IMAGES = 4000  # that patches are learned from

Scale = Callable[[Tensor], Tensor]  # standardises raw inputs
Views = Callable[[Array], list[Tensor]]  # instances in each view


@torch.no_grad()
def compute_views(
    network: Network, patches: PatchDictionary | None, x: Tensor, batch_size: int = 512
) -> list[Tensor]:
    """Instances in each of ``VIEWS``, with the network in evaluation mode."""
    features = backbone_features(network, x, batch_size)
    inputs = view_inputs(network.scale, patches, x, batch_size)
    return [network.embedding(features), features, inputs]


def view_inputs(
    scale: Scale, patches: PatchDictionary | None, x: Tensor, batch_size: int = 512
) -> Tensor:
    """The strengths of patches in each image, or each scaled vector. Labels play no part."""
    if patches is None:
        return map_batches(scale, x, batch_size)
    return map_batches(lambda batch: patches(scale(batch)), x, batch_size)


def learn_patches(scale: Scale, x: Tensor, generator: torch.Generator) -> PatchDictionary | None:
    """Learn the typical patches of images from a sample of them. None for vectors."""
    if x.ndim != 4:
        return None
    patches = PatchDictionary(tuple(x.shape[1:])).to(x.device)
    some = torch.randperm(len(x), generator=generator)[:N_PATCHED_IMAGES].to(x.device)
    patches.learn(scale(x[some]), generator)
    return patches


def learn_views(
    network: Network, X: Array, generator: torch.Generator, *, inputs_only: bool
) -> Views:
    """The views by a trained network, with the typical patches of these instances."""
    device = network.device
    patches = learn_patches(network.scale, as_tensor(X, device), generator)
    if inputs_only:
        return lambda X: [view_inputs(network.scale, patches, as_tensor(X, device))]
    return lambda X: compute_views(network, patches, as_tensor(X, device))
