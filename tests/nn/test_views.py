"""The views of instances."""

from __future__ import annotations

import torch
from torch import Tensor

from cilf.nn.network import as_tensor, embed, make_network
from cilf.nn.views import compute_views, learn_patches, learn_views


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_views_of_vectors_are_embedding_features_and_scaled_inputs() -> None:
    network = make_network(
        "mlp", (24,), embedding_size=3, width=4, seed=0, device=torch.device("cpu")
    )
    x = 5 + normal(9, 24)
    network.standardise(x)
    z, features, inputs = compute_views(network, None, x, batch_size=4)
    assert torch.allclose(z, embed(network, x), atol=1e-6)
    assert torch.allclose(network.embedding(features), z, atol=1e-6)
    assert torch.equal(inputs, network.scale(x))
    assert learn_patches(network.scale, x, torch.Generator()) is None


def test_inputs_of_images_are_strengths_of_patches_whatever_the_batch() -> None:
    network = make_network(
        "convnet", (24, 5, 3), embedding_size=3, width=4, seed=0, device=torch.device("cpu")
    )
    x = normal(40, 3, 24, 5)
    network.standardise(x)
    patches = learn_patches(network.scale, x, torch.Generator().manual_seed(0))
    assert patches is not None
    inputs = compute_views(network, patches, x, batch_size=7)[2]
    assert torch.allclose(inputs, patches(network.scale(x)), atol=1e-5)


def test_learned_views_are_those_of_the_network_or_the_inputs_alone() -> None:
    network = make_network(
        "convnet", (24, 5, 3), embedding_size=3, width=4, seed=0, device=torch.device("cpu")
    )
    X = normal(40, 24, 5, 3).numpy()
    x = as_tensor(X, network.device)
    patches = learn_patches(network.scale, x, torch.Generator().manual_seed(0))
    wanted = compute_views(network, patches, x)
    for inputs_only, expected in ((False, wanted), (True, wanted[2:])):
        rng = torch.Generator().manual_seed(0)
        found = learn_views(network, X, rng, inputs_only=inputs_only)(X)
        assert len(found) == len(expected)
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
