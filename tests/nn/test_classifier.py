from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.nn.classifier import grow_head, grow_layer, train_classifier
from cilf.nn.network import Network, embed, make_network
from cilf.nn.training import Settings

CPU = torch.device("cpu")
Untouched = Callable[[], AbstractContextManager[None]]


def classifier(n_classes: int = 3) -> Network:
    return make_network("mlp", (4,), embedding_size=n_classes, width=8, seed=0, device=CPU)


def blobs(n: int = 20) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(0)
    centres = 4 * torch.randn(3, 4, generator=rng)
    y = torch.arange(3).repeat(n)
    return centres[y] + torch.randn(3 * n, 4, generator=rng), y


def trained(network: Network, x: Tensor, y: Tensor, *, seed: int = 0, batches: int = 0) -> Network:
    train_classifier(
        network, x, y, Settings(epochs=5, learning_rate=0.05), batch_size=16,
        generator=torch.Generator().manual_seed(batches), seed=seed, purpose="test",
    )  # fmt: skip
    return network


def test_a_grown_head_keeps_the_logits_it_gave() -> None:
    network, (x, _) = classifier(), blobs()
    before = embed(network, x)
    grow_head(network, 5, seed=0)
    after = embed(network, x)
    assert after.shape == (60, 5)
    assert torch.allclose(after[:, :3], before, atol=1e-6)
    assert after[:, 3:].std() > 0


def test_a_head_of_the_right_size_stays() -> None:
    network = classifier()
    head = network.head
    grow_head(network, 3, seed=0)
    assert network.head is head


def test_new_outputs_come_from_the_seed(untouched: Untouched) -> None:
    old = nn.Linear(4, 2)
    with untouched():
        first, again, other = (grow_layer(old, 4, seed).weight for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert torch.equal(first[:2], other[:2])
    assert not torch.equal(first[2:], other[2:])


def test_growing_leaves_the_old_layer_alone() -> None:
    old = nn.Linear(4, 2)
    weight = old.weight.detach().clone()
    with torch.no_grad():
        grow_layer(old, 3, seed=0).weight.zero_()
    assert torch.equal(old.weight, weight)


def test_training_lowers_the_cross_entropy_and_tells_classes_apart() -> None:
    network, (x, y) = classifier(), blobs()
    network.standardise(x)
    before = F.cross_entropy(embed(network, x), y)
    logits = embed(trained(network, x, y), x)
    assert F.cross_entropy(logits, y) < before / 3
    assert (logits.argmax(1) == y).float().mean() > 0.95
    assert not network.training


def test_a_step_follows_the_gradient_of_the_cross_entropy() -> None:
    network, (x, y) = classifier(), blobs()
    weight = network.head.weight.detach().clone()
    network.train()
    (gradient,) = torch.autograd.grad(F.cross_entropy(network(x), y), [network.head.weight])
    fresh = classifier()
    train_classifier(
        fresh, x, y, Settings(epochs=1, learning_rate=0.1, momentum=0.0, weight_decay=0.0),
        batch_size=len(x), generator=torch.Generator().manual_seed(0), seed=0, purpose="test",
    )  # fmt: skip
    assert torch.allclose(fresh.head.weight, weight - 0.1 * gradient, atol=1e-6)


@pytest.mark.parametrize("batches", [0, 1])
def test_batches_come_from_the_generator(batches: int, untouched: Untouched) -> None:
    x, y = blobs()
    with untouched():
        first = trained(classifier(), x, y)
        second = trained(classifier(), x, y, batches=batches)
    assert torch.equal(first.head.weight, second.head.weight) == (batches == 0)
