"""The views of an instance: the output of a network, its features, and the inputs.

An embedding that is trained on known classes loses what tells novel ones apart. The features one
layer earlier keep some of it, and the inputs keep all.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cilf.nn.network import Network, backbone_features
from cilf.nn.patches import PatchDictionary

VIEWS = ["embedding", "features", "inputs"]
N_PATCHED_IMAGES = 4000  # that patches are learned from


@torch.no_grad()
def compute_views(
    network: Network, patches: PatchDictionary | None, x: Tensor, batch_size: int = 512
) -> list[Tensor]:
    """Instances in each of ``VIEWS``, with the network in evaluation mode.

    The view of the inputs does not depend on labels. It holds the strengths of patches in an image,
    or the scaled vector.
    """
    features = backbone_features(network, x, batch_size)
    scaled = [network.scale(batch) for batch in torch.split(x, batch_size)]
    inputs = torch.cat(scaled if patches is None else [patches(batch) for batch in scaled])
    return [network.embedding(features), features, inputs]


def learn_patches(
    network: Network, x: Tensor, generator: torch.Generator
) -> PatchDictionary | None:
    """Learn the typical patches of images from a sample of them. None for vectors."""
    if x.ndim != 4:
        return None
    patches = PatchDictionary(tuple(x.shape[1:])).to(network.device)
    some = torch.randperm(len(x), generator=generator)[:N_PATCHED_IMAGES].to(x.device)
    patches.learn(network.scale(x[some]), generator)
    return patches
