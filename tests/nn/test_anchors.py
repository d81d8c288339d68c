from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from cilf.nn.anchors import Anchors
from cilf.nn.classifier import grow_layer

DOUBLE = torch.float64


def layer(n_outputs: int = 2, seed: int = 0) -> nn.Linear:
    rng = torch.Generator().manual_seed(seed)
    made = nn.Linear(3, n_outputs).double()
    with torch.no_grad():
        for weight in made.parameters():
            weight.copy_(torch.randn(weight.shape, generator=rng, dtype=DOUBLE))
    return made


def importance(n_outputs: int = 2, seed: int = 0) -> dict[str, Tensor]:
    rng = torch.Generator().manual_seed(100 + seed)
    shapes = {"weight": (n_outputs, 3), "bias": (n_outputs,)}
    return {k: torch.rand(shape, generator=rng, dtype=DOUBLE) for k, shape in shapes.items()}


def direct_distance(anchors: Anchors, network: nn.Linear, n_outputs: int) -> float:
    """One number after the other."""
    total = 0.0
    for i in range(n_outputs):
        weight, bias = anchors.importance["weight"][i], anchors.importance["bias"][i]
        total += bias.item() * (network.bias[i] - anchors.weights["bias"][i]).item() ** 2
        for j in range(3):
            moved = (network.weight[i, j] - anchors.weights["weight"][i, j]).item()
            total += weight[j].item() * moved**2
    return total


def test_a_network_is_at_its_own_anchors() -> None:
    network = layer()
    anchors = Anchors.of(network, importance())
    assert anchors.distance(network).item() == 0.0
    with torch.no_grad():
        network.weight += 1.0
    assert anchors.distance(network).item() > 0.0  # they are a copy


def test_distance_is_the_direct_sum_over_what_was_there() -> None:
    anchors = Anchors.of(layer(), importance())
    network = layer(n_outputs=4, seed=1)
    expected = direct_distance(anchors, network, n_outputs=2)
    assert anchors.distance(network).item() == pytest.approx(expected, rel=1e-12)
    with torch.no_grad():
        network.weight[2:] += 100.0
    assert anchors.distance(network).item() == pytest.approx(expected, rel=1e-12)


def test_without_importance_all_weights_are_alike() -> None:
    network, other = layer(), layer(seed=1)
    moved = [a - b for a, b in zip(network.parameters(), other.parameters(), strict=True)]
    expected = sum(part.square().sum().item() for part in moved)
    assert Anchors.of(network).distance(other).item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("strength", [0.0, 0.3, 5.0, 1e4])
def test_a_pull_ends_where_distance_and_way_are_least(strength: float) -> None:
    anchors, network = Anchors.of(layer(), importance()), layer(seed=1)
    start = Anchors.of(network)
    anchors.pull(network, strength)
    total = strength * anchors.distance(network) + start.distance(network) / 2
    gradients = torch.autograd.grad(total, list(network.parameters()))
    assert max(part.abs().max().item() for part in gradients) < 1e-10


@pytest.mark.parametrize("strength", [1e12, 1e300])
def test_a_huge_pull_goes_to_the_anchor_and_no_further(strength: float) -> None:
    matters = importance()
    matters["weight"][0, 0] = 0.0
    anchors, network = Anchors.of(layer(), matters), layer(n_outputs=3, seed=1)
    free = [network.weight[0, 0].item(), *network.weight[2].tolist(), network.bias[2].item()]
    anchors.pull(network, strength)
    reached = network.weight[:2].detach().clone()
    assert [reached[0, 0].item(), *network.weight[2].tolist(), network.bias[2].item()] == free
    reached[0, 0] = anchors.weights["weight"][0, 0]
    assert torch.allclose(reached, anchors.weights["weight"], atol=1e-9)
    assert torch.allclose(network.bias[:2], anchors.weights["bias"], atol=1e-9)


def test_a_pull_too_strong_for_single_precision_moves_nothing_that_does_not_matter() -> None:
    network = layer(seed=1).float()
    anchors = Anchors.of(layer().float(), {"weight": torch.zeros(2, 3), "bias": torch.ones(2)})
    free = network.weight.detach().clone()
    anchors.pull(network, 1e39)
    assert torch.equal(network.weight, free)
    assert torch.equal(network.bias, anchors.weights["bias"])


def test_joined_anchors_pull_as_both_do() -> None:
    first = Anchors.of(layer(), importance())
    second = Anchors.of(layer(n_outputs=3, seed=1), importance(n_outputs=3, seed=1))
    both = first.combine(second)
    constants = []
    for seed in (2, 3, 4):
        network = layer(n_outputs=4, seed=seed)
        direct = direct_distance(first, network, 2) + direct_distance(second, network, 3)
        constants.append(direct - both.distance(network).item())
    assert constants[0] > 0  # the two cannot both be reached
    assert constants == pytest.approx([constants[0]] * 3, rel=1e-9)


def test_what_never_mattered_is_joined_without_trouble() -> None:
    nothing = {name: torch.zeros_like(values) for name, values in importance().items()}
    first, second = (Anchors.of(layer(seed=seed), nothing) for seed in (0, 1))
    both = first.combine(second)
    assert torch.equal(both.weights["weight"], second.weights["weight"])
    assert torch.count_nonzero(both.importance["weight"]) == 0


def test_renewed_anchors_are_the_later_ones_and_what_mattered_fades() -> None:
    first = Anchors({"w": torch.tensor([1.0, 2.0])}, {"w": torch.tensor([4.0, 8.0])})
    later = Anchors({"w": torch.tensor([5.0, 6.0, 7.0])}, {"w": torch.tensor([1.0, 0.0, 3.0])})
    renewed = first.renew(later, decay=0.5)
    assert renewed.weights["w"].tolist() == [5.0, 6.0, 7.0]
    assert renewed.importance["w"].tolist() == [3.0, 4.0, 3.0]
    assert first.renew(later).importance["w"].tolist() == [5.0, 8.0, 3.0]


@pytest.mark.parametrize("matters", [importance(), None])
def test_stored_anchors_come_back(matters: dict[str, Tensor] | None) -> None:
    anchors = Anchors.of(layer(), matters)
    arrays = anchors.arrays("one") | Anchors.of(layer(seed=1)).arrays("two")
    back = Anchors.restore(arrays, "one", torch.device("cpu"))
    network = grow_layer(layer(seed=2), 3, seed=0).double()
    assert torch.equal(back.distance(network), anchors.distance(network))
    assert (back.importance is None) == (matters is None)
