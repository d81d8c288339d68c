from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from cilf.core.random import isolated_torch
from cilf.learners.imm.drop_transfer import drop_transfer
from cilf.nn.anchors import Anchors


def moved(layer: nn.Linear, n_outputs: int | None = None) -> nn.Linear:
    """A layer some way from this one, maybe with more outputs."""
    with isolated_torch(1, "moved"):
        return nn.Linear(layer.in_features, n_outputs or layer.out_features)


@pytest.fixture
def before() -> nn.Linear:
    with isolated_torch(0, "before"):
        return nn.Linear(3, 2)


@pytest.fixture
def x() -> Tensor:
    return torch.tensor([[1.0, -2.0, 0.5]])


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.8])
def test_the_mean_over_draws_is_the_output_without_it(
    before: nn.Linear, x: Tensor, rate: float
) -> None:
    layer = moved(before)
    with isolated_torch(0, "draws"), drop_transfer(layer, Anchors.of(before), rate):
        outputs = layer(x.expand(200_000, -1)).detach()
    error = outputs.std(0) / len(outputs) ** 0.5
    assert (outputs.std(0) > 0.1).all()
    assert ((outputs.mean(0) - layer(x)[0]).abs() < 4 * error).all()


def test_an_input_takes_its_earlier_weights_or_what_makes_up_for_them() -> None:
    before, layer = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
    nn.init.constant_(before.weight, 2.0)
    nn.init.constant_(layer.weight, 5.0)
    rate = 0.25
    with isolated_torch(0, "draws"), drop_transfer(layer, Anchors.of(before), rate):
        outputs = layer(torch.ones(1000, 1)).detach()
    on = (5.0 - rate * 2.0) / (1 - rate)
    is_off = torch.isclose(outputs, torch.tensor(2.0))
    assert (is_off | torch.isclose(outputs, torch.tensor(on))).all()
    assert is_off.float().mean().item() == pytest.approx(rate, abs=0.05)


def test_weights_that_have_not_moved_are_not_touched(before: nn.Linear, x: Tensor) -> None:
    layer = copy.deepcopy(before)
    with drop_transfer(layer, Anchors.of(before), 0.9):
        assert torch.equal(layer(x), before(x))


def test_outputs_that_came_later_are_as_they_are(before: nn.Linear, x: Tensor) -> None:
    layer = moved(before, n_outputs=4)
    plain = layer(x)
    with isolated_torch(0, "draws"), drop_transfer(layer, Anchors.of(before), 0.5):
        outputs = layer(x.expand(50, -1))
    assert torch.allclose(outputs[:, 2:], plain[:, 2:].expand(50, -1))
    assert (outputs[:, :2].std(0) > 0.1).all()


def test_only_linear_layers_and_only_inside() -> None:
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 2))
    before = copy.deepcopy(network)
    with torch.no_grad():
        network[0].weight += 1.0
    x = torch.rand(1, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    plain = network(x)
    with drop_transfer(network, Anchors.of(before), 0.5):
        assert torch.equal(network(x), plain)  # the convolution has moved, the linear layer not
    with torch.no_grad():
        network[2].weight += 1.0
    plain = network(x)
    with drop_transfer(network, Anchors.of(before), 0.5):
        assert not torch.equal(network(x), plain)
    assert torch.equal(network(x), plain)


def test_an_error_inside_leaves_nothing_behind(before: nn.Linear) -> None:
    layer = moved(before)

    def fail() -> None:
        with drop_transfer(layer, Anchors.of(before), 0.5):
            layer(torch.ones(1, 7))  # three inputs are wanted

    with pytest.raises(RuntimeError):
        fail()
    assert not layer._forward_hooks
