from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from cilf.core import parameters, progress
from cilf.errors import BadConfig
from cilf.nn.anchors import Anchors
from cilf.nn.network import Network, embed, make_network
from cilf.nn.training import (
    Batches,
    Epoch,
    Objective,
    Settings,
    Training,
    epochs,
    even_batches,
    shuffle_batches,
)

from ..host_waits import count_waits

CPU = torch.device("cpu")
N = 12
X = torch.randn(N, 4, generator=torch.Generator().manual_seed(1))
IMAGES = torch.randn(N, 1, 8, 8, generator=torch.Generator().manual_seed(1))
TARGET = torch.randn(N, 2, generator=torch.Generator().manual_seed(2))


def linear(n_inputs: int = 4) -> Network:
    """A network without batch statistics, whose steps are easily computed by hand."""
    return make_network(
        lambda shape: nn.Flatten(), (n_inputs,), embedding_size=2, width=None, seed=0, device=CPU
    )


def dropping() -> Network:
    def factory(shape: tuple[int, ...]) -> nn.Module:
        return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5))

    return make_network(factory, (4,), embedding_size=2, width=None, seed=0, device=CPU)


def convolutional() -> Network:
    return make_network("convnet", (8, 8), embedding_size=2, width=4, seed=0, device=CPU)


def error(z: Tensor, rows: Tensor) -> Tensor:
    return (z - TARGET[rows]).square().mean()


def all_rows(_: int) -> list[Tensor]:
    return [torch.arange(N)]


def train(
    network: Network,
    settings: Settings,
    *,
    inputs: Tensor = X,
    batches: Batches = all_rows,
    objective: Objective = error,
    seed: int = 0,
    purpose: str = "fit",
) -> list[Epoch]:
    found = epochs(network, inputs, batches, objective, settings, seed=seed, purpose=purpose)
    return list(found)


def weights(network: Network) -> Tensor:
    return torch.cat([p.detach().flatten() for p in network.parameters()])


# ------------------------------------------------------------------------------- the steps


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_steps_are_those_of_sgd_with_nesterov_momentum_and_weight_decay(momentum: float) -> None:
    network, decay, rate = linear(), 0.1, 0.05
    weight = network.head.weight.detach().clone().double()
    bias = network.head.bias.detach().clone().double()
    speed = [torch.zeros_like(weight), torch.zeros_like(bias)]
    for _ in range(4):
        residual = 2 * (X.double() @ weight.T + bias - TARGET.double()) / TARGET.numel()
        gradients = [residual.T @ X.double() + decay * weight, residual.sum(0) + decay * bias]
        speed = [momentum * v + g for v, g in zip(speed, gradients, strict=True)]
        steps = [g + momentum * v for v, g in zip(speed, gradients, strict=True)]
        weight, bias = weight - rate * steps[0], bias - rate * steps[1]
    train(network, Settings(4, rate, momentum=momentum, weight_decay=decay))
    assert torch.allclose(network.head.weight.double(), weight, atol=1e-5)
    assert torch.allclose(network.head.bias.double(), bias, atol=1e-5)


def test_an_epoch_tells_its_mean_loss_and_what_it_saw() -> None:
    network = linear()
    before = network(X).detach()
    batches = [torch.tensor([3, 1]), torch.tensor([0, 5, 7])]
    still = Settings(1, 0.0)
    (epoch,) = train(network, still, batches=lambda _: batches)
    assert epoch.number == 0
    assert epoch.rows.tolist() == [3, 1, 0, 5, 7]
    assert torch.allclose(epoch.z, before[epoch.rows])
    assert not epoch.z.requires_grad
    losses = [float(error(before[rows], rows)) for rows in batches]
    assert epoch.loss == pytest.approx(sum(losses) / 2)


def test_training_lowers_the_loss() -> None:
    done = train(convolutional(), Settings(15, 0.05), inputs=IMAGES)
    assert done[-1].loss < 0.5 * done[0].loss


def test_the_caller_may_change_what_the_objective_uses_between_epochs() -> None:
    scale = torch.tensor(1.0)

    def objective(z: Tensor, rows: Tensor) -> Tensor:
        return scale * z.sum() * 0 + scale

    losses = []
    for epoch in epochs(linear(), X, all_rows, objective, Settings(3, 0.1), seed=0, purpose="fit"):
        losses.append(epoch.loss)
        scale = scale * 2
    assert losses == [1, 2, 4]


def test_no_epochs_change_nothing() -> None:
    network = linear().train()
    before = weights(network)
    assert train(network, Settings(0, 0.1)) == []
    assert torch.equal(weights(network), before)
    assert not network.training


def test_a_batch_of_one_trains_without_batch_statistics() -> None:
    network = convolutional()
    (epoch,) = train(
        network, Settings(1, 0.1), inputs=IMAGES, batches=lambda _: [torch.tensor([4])]
    )
    alone = convolutional().eval()(IMAGES[4:5])
    assert torch.allclose(epoch.z, alone, atol=1e-6)
    assert not torch.equal(weights(network), weights(convolutional()))


# ------------------------------------------------------------------------------- settings


def test_clipping_bounds_the_step() -> None:
    def steep(z: Tensor, rows: Tensor) -> Tensor:
        return 1e6 * error(z, rows)

    network = linear()
    before = weights(network)
    settings = Settings(1, 0.1, momentum=0.0, weight_decay=0.0, clip=0.5)
    train(network, settings, objective=steep)
    assert float((weights(network) - before).norm()) == pytest.approx(0.1 * 0.5, rel=1e-4)


def test_gradients_below_the_bound_are_not_clipped() -> None:
    bounded, free = linear(), linear()
    train(bounded, Settings(3, 0.1, clip=1e6))
    train(free, Settings(3, 0.1))
    assert torch.equal(weights(bounded), weights(free))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"batch_size": 0}, r"training\.batch_size is 0"),
        ({"learning_rate": -0.1}, r"training\.learning_rate is -0\.1"),
        ({"update_learning_rate": math.nan}, r"training\.update_learning_rate is nan"),
        ({"weight_decay": -1}, r"training\.weight_decay is -1"),
        ({"clip": "x"}, r"training\.clip is 'x'"),
        ({"augmentation": "flop"}, r"unknown training\.augmentation 'flop': did you mean 'flip'"),
        ({"schedule": "cosin"}, r"unknown training\.schedule 'cosin': did you mean 'cosine'"),
        ({"precision": "fp16"}, r"unknown training\.precision 'fp16'"),
    ],
)
def test_parameters_that_cannot_work_are_refused(changed: dict[str, Any], message: str) -> None:
    parameters.check_params(Training(), "training.")
    with pytest.raises(BadConfig, match=message):
        parameters.check_params(Training(**changed), "training.")


def test_parameters_reach_the_settings() -> None:
    changed: dict[str, Any] = {
        "weight_decay": 0.5, "clip": None, "augmentation": "flip", "schedule": "cosine",
        "precision": "bf16",
    }  # fmt: skip
    assert Training(**changed).settings(3, 0.2) == Settings(3, 0.2, **changed)


def test_an_unknown_augmentation_is_answered_with_the_nearest() -> None:
    with pytest.raises(BadConfig, match=r"unknown augmentation 'flop': did you mean 'flip'\?"):
        train(linear(), Settings(1, 0.1, augmentation="flop"))


def test_vectors_are_not_augmented() -> None:
    plain, asked = linear(), linear()
    train(plain, Settings(2, 0.1))
    train(asked, Settings(2, 0.1, augmentation="shift-flip"))
    assert torch.equal(weights(plain), weights(asked))


def test_images_are_augmented_anew_in_every_epoch() -> None:
    still = Settings(3, 0.0, weight_decay=0.0, augmentation="shift")
    first, second, third = (epoch.z for epoch in train(convolutional(), still, inputs=IMAGES))
    assert not torch.allclose(first, second)
    assert not torch.allclose(second, third)


# ------------------------------------------------------------------------------- randomness


def random_parts(seed: int = 0, purpose: str = "fit") -> Tensor:
    """Weights after training with dropout."""
    network = dropping()
    train(network, Settings(3, 0.1), seed=seed, purpose=purpose)
    return weights(network)


def test_dropout_follows_the_seed_and_the_purpose() -> None:
    assert torch.equal(random_parts(), random_parts())
    assert not torch.equal(random_parts(), random_parts(seed=1))
    assert not torch.equal(random_parts(), random_parts(purpose="update"))


def test_dropout_differs_between_epochs() -> None:
    first, second = (epoch.z for epoch in train(dropping(), Settings(2, 0.0, weight_decay=0.0)))
    assert not torch.equal(first, second)


def augmented(seed: int = 0) -> Tensor:
    network = convolutional()
    settings = Settings(2, 0.1, augmentation="shift-flip")
    train(network, settings, inputs=IMAGES, seed=seed)
    return weights(network)


def test_augmentation_follows_the_seed() -> None:
    assert torch.equal(augmented(), augmented())
    assert not torch.equal(augmented(), augmented(seed=1))


@pytest.mark.parametrize("trained", [random_parts, augmented])
def test_global_generators_have_no_influence_and_stay_untouched(
    trained: Callable[[], Tensor], untouched: Callable[[], AbstractContextManager[None]]
) -> None:
    before = trained()
    with untouched():
        again = trained()
    assert torch.equal(again, before)


def test_a_caller_who_draws_between_epochs_changes_nothing() -> None:
    network = dropping()
    for _ in epochs(network, X, all_rows, error, Settings(3, 0.1), seed=0, purpose="fit"):
        torch.rand(5)
    assert torch.equal(weights(network), random_parts())


# ------------------------------------------------------------------------------- the loop


@pytest.mark.parametrize("leave_after", [1, 2])
def test_leaving_the_loop_leaves_the_network_in_evaluation_mode(leave_after: int) -> None:
    network, done = convolutional(), 0
    for _ in epochs(network, IMAGES, all_rows, error, Settings(5, 0.1), seed=0, purpose="fit"):
        assert network.training
        done += 1
        if done == leave_after:
            break
    assert done == leave_after
    assert not any(part.training for part in network.modules())


def test_the_end_and_a_failure_leave_it_in_evaluation_mode_too() -> None:
    network = convolutional()
    train(network, Settings(1, 0.1), inputs=IMAGES)
    assert not network.training

    def fail(z: Tensor, rows: Tensor) -> Tensor:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        train(network, Settings(1, 0.1), inputs=IMAGES, objective=fail)
    assert not network.training


def test_progress_is_reported_after_each_epoch() -> None:
    told: list[tuple[str, int, int]] = []
    with progress.listen(lambda *step: told.append(step)):
        train(linear(), Settings(3, 0.1), purpose="update")
    assert told == [("update", 1, 3), ("update", 2, 3), ("update", 3, 3)]


@given(st.integers(1, 50), st.integers(1, 60), st.integers(0, 100))
def test_shuffle_batches_visits_every_row_once_per_epoch_in_even_batches(
    n: int, batch_size: int, seed: int
) -> None:
    batches = shuffle_batches(n, batch_size, torch.Generator().manual_seed(seed), CPU)
    for number in range(2):
        sizes = [len(rows) for rows in batches(number)]
        assert max(sizes) <= batch_size
        assert max(sizes) - min(sizes) <= 1
        assert len(sizes) == math.ceil(n / batch_size)
    assert sorted(torch.cat(list(batches(2))).tolist()) == list(range(n))


def test_shuffle_batches_is_seeded_and_differs_between_epochs() -> None:
    def orders(seed: int) -> list[list[int]]:
        batches = shuffle_batches(20, 6, torch.Generator().manual_seed(seed), CPU)
        return [torch.cat(list(batches(number))).tolist() for number in range(2)]

    assert orders(0) == orders(0)
    assert orders(0) != orders(1)
    assert orders(0)[0] != orders(0)[1]


def test_a_loss_that_is_no_number_ends_the_training() -> None:
    def broken(z: Tensor, rows: Tensor) -> Tensor:
        return error(z, rows) * math.nan

    with pytest.raises(BadConfig, match="the loss became nan in epoch 1: lower the learning rate"):
        train(linear(), Settings(2, 0.1), objective=broken)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("weight", [0.0, 0.5, 50.0])
def test_with_a_pull_training_ends_where_loss_and_distance_are_least(
    momentum: float, weight: float
) -> None:
    network = linear()
    anchors = Anchors.of(linear())  # the same weights
    settings = Settings(epochs=150, learning_rate=0.3, momentum=momentum, weight_decay=0.0)
    for _ in epochs(
        network, X, all_rows, error, settings, seed=0, purpose="test",
        pull=lambda step: anchors.pull(network, weight * step),
    ):  # fmt: skip
        pass
    total = error(network(X), torch.arange(N)) + weight * anchors.distance(network)
    gradients = torch.autograd.grad(total, list(network.parameters()))
    assert max(part.abs().max().item() for part in gradients) < 1e-3
    assert anchors.distance(network).item() > 1e-6


def test_even_batches_have_as_many_rows_of_each_class() -> None:
    y = torch.tensor([0] * 50 + [1] * 7 + [2] * 13)
    draws = torch.Generator().manual_seed(0)
    batches = even_batches(y, 16, draws, torch.device("cpu"))
    epochs = [torch.cat(list(batches(number))) for number in range(3)]
    for rows in epochs:
        assert torch.bincount(y[rows]).tolist() == [24, 24, 24]
        for label in (1, 2):  # none is taken twice before each was taken once
            counts = torch.bincount(rows[y[rows] == label], minlength=len(y))[y == label]
            assert int(counts.max() - counts.min()) <= 1
    assert not torch.equal(epochs[0], epochs[1])
    assert max(len(rows) for rows in batches(0)) <= 16


# ------------------------------------------------------------------------------- the schedule


def test_the_cosine_schedule_is_that_of_torch() -> None:
    network, rates = linear(), []
    optimizer = torch.optim.SGD(network.parameters(), lr=0.3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=7)
    settings = Settings(7, 0.3, schedule="cosine")
    for number in range(7):
        rates.append(settings.in_epoch(number).learning_rate)
        assert rates[-1] == pytest.approx(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert rates == sorted(rates, reverse=True)


def test_steps_follow_the_schedule() -> None:
    """Without momentum each epoch of one batch is one step of the rate of its epoch."""
    network, expected = linear(), linear()
    settings = Settings(4, 0.1, momentum=0.0, weight_decay=0.0, schedule="cosine")
    train(network, settings)
    for number in range(4):
        loss = error(expected(X), torch.arange(N))
        gradients = torch.autograd.grad(loss, list(expected.parameters()))
        with torch.no_grad():
            for weight, gradient in zip(expected.parameters(), gradients, strict=True):
                weight -= settings.in_epoch(number).learning_rate * gradient
    assert torch.allclose(weights(network), weights(expected), atol=1e-6)


def test_a_pull_is_told_the_step_of_its_epoch() -> None:
    told: list[float] = []
    settings = Settings(3, 0.1, momentum=0.5, schedule="cosine")
    for _ in epochs(
        linear(), X, all_rows, error, settings, seed=0, purpose="test", pull=told.append
    ):
        pass
    assert told == [settings.in_epoch(number).step for number in range(3)]
    assert told[0] == pytest.approx(0.2)
    assert told[2] == pytest.approx(0.05)


def test_a_constant_schedule_changes_nothing() -> None:
    settings = Settings(3, 0.1)
    assert all(settings.in_epoch(number) is settings for number in range(3))


# ------------------------------------------------------------------------------- precision


def test_a_step_in_bf16_is_nearly_that_in_float32() -> None:
    before, steps = weights(convolutional()), []
    for precision in ("float32", "bf16"):
        network = convolutional()
        train(network, Settings(1, 0.05, precision=precision), inputs=IMAGES)
        steps.append(weights(network) - before)
    apart = float((steps[0] - steps[1]).norm() / steps[0].norm())
    assert 0 < apart < 0.05  # a number in bfloat16 is off by up to 0.004 of itself


def test_auto_is_float32_on_the_cpu() -> None:
    auto, exact = convolutional(), convolutional()
    train(auto, Settings(2, 0.05), inputs=IMAGES)
    train(exact, Settings(2, 0.05, precision="float32"), inputs=IMAGES)
    assert torch.equal(weights(auto), weights(exact))


def test_the_objective_and_all_that_follows_are_float32() -> None:
    seen: list[torch.dtype] = []

    def objective(z: Tensor, rows: Tensor) -> Tensor:
        seen.append((z @ z.T).dtype)  # autocast would make it bfloat16
        return error(z, rows)

    network = convolutional()
    (epoch,) = train(
        network, Settings(1, 0.05, precision="bf16"), inputs=IMAGES, objective=objective
    )
    assert seen == [torch.float32]
    assert epoch.z.dtype == torch.float32
    assert {weight.dtype for weight in network.parameters()} == {torch.float32}
    assert embed(network, IMAGES).dtype == torch.float32


# ------------------------------------------------------------------------------- devices


def test_the_host_waits_once_per_epoch_however_many_batches_there_are() -> None:
    def waits(batch_size: int) -> int:
        rng = torch.Generator().manual_seed(0)
        batches = shuffle_batches(N, batch_size, rng, CPU)
        settings = Settings(2, 0.1, clip=1.0, augmentation="shift-flip")
        return count_waits(lambda: train(convolutional(), settings, inputs=IMAGES, batches=batches))

    none = count_waits(lambda: train(convolutional(), Settings(0, 0.1), inputs=IMAGES))
    assert waits(batch_size=2) - none == waits(batch_size=12) - none == 2
