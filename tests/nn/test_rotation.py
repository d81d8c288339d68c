from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from cilf.nn import training
from cilf.nn.network import Network, as_tensor, make_network
from cilf.nn.rotation import RotationTask, turned

CPU = torch.device("cpu")


def bars(n: int, shape: tuple[int, int] = (8, 8)) -> Tensor:
    """Images that are bright on top."""
    X = np.random.default_rng(0).normal(0, 0.1, (n, *shape)).astype(np.float32)
    X[:, : shape[0] // 4] += 1
    return as_tensor(X, CPU)


def network(shape: tuple[int, int] = (8, 8)) -> Network:
    return make_network("convnet", shape, embedding_size=4, width=4, seed=0, device=CPU)


def test_each_image_is_turned_by_its_own_number_of_quarters() -> None:
    x = torch.arange(4 * 9.0).reshape(4, 1, 3, 3)
    found = turned(x, torch.tensor([0, 1, 2, 3]))
    for quarter in range(4):
        assert torch.equal(found[quarter], torch.rot90(x[quarter], quarter, (1, 2)))


def test_the_given_images_stay_as_they_are() -> None:
    x = torch.arange(9.0).reshape(1, 1, 3, 3)
    turned(x, torch.tensor([2]))
    assert torch.equal(x, torch.arange(9.0).reshape(1, 1, 3, 3))


@pytest.mark.parametrize(("shape", "n_turns"), [((8, 8), 4), ((8, 6), 2)])
def test_images_that_are_not_square_are_turned_upside_down_only(
    shape: tuple[int, int], n_turns: int
) -> None:
    task = RotationTask(network(shape), bars(4, shape), weight=1.0, seed=0)
    assert task.head.out_features == n_turns
    copies, turns = task.turned(bars(64, shape))
    assert copies.shape == (64, 1, *shape)
    assert sorted(turns.unique().tolist()) == list(range(n_turns))


def test_equal_seeds_draw_equal_turns_and_the_weight_scales_the_loss() -> None:
    x, net = bars(16), network()
    net.eval()
    found = []
    for weight in (1.0, 1.0, 2.0):
        task = RotationTask(net, x, weight=weight, seed=3)
        copies, turns = task.turned(x)
        found.append(float(task(net.features(copies), turns).detach()))
    assert found[0] == found[1] == pytest.approx(found[2] / 2)


def test_the_task_is_learned_beside_an_objective_that_asks_nothing() -> None:
    x, net = bars(32), network()
    task = RotationTask(net, x, weight=1.0, seed=0)
    draws = torch.Generator().manual_seed(0)
    losses = [
        epoch.loss
        for epoch in training.epochs(
            net, x, training.shuffled(32, 16, draws, CPU), lambda z, _: 0 * z.sum(),
            training.Settings(epochs=15, learning_rate=0.05), seed=0, purpose="test", task=task,
        )
    ]  # fmt: skip
    assert losses[-1] < 0.5 * losses[0]
